UNITS = [("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)]


def label(seconds, most=4):
    if seconds < 0:
        raise ValueError("seconds must not be negative")
    parts = []
    for name, size in UNITS:
        count = seconds // size
        seconds = seconds % size
        if count > 0:
            parts.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    parts = parts[:most]
    if not parts:
        return "no time"
    if len(parts) == 1:
        return parts[0]
    return ", ".join(parts[:-1]) + " and " + parts[-1]
