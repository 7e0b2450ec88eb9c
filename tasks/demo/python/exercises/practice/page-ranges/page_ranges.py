def pack(pages):
    """Write a list of pages as text: [1, 2, 3, 7] becomes "1-3, 7"."""
    runs = []
    for page in sorted(pages):
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def unpack(text):
    raise NotImplementedError
