UNITS = [("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)]


def label(seconds, most=4):
    parts = []
    for name, size in UNITS:
        count = seconds // size
        seconds = seconds % size
        if count > 0:
            parts.append(f"{count} {name}s")
    parts = parts[-most:]
    return ", ".join(parts[:-1]) + " and " + parts[-1]
