import re


def pack(pages):
    """Write a list of pages as text: [1, 2, 3, 7] becomes "1-3, 7"."""
    runs = []
    for page in sorted(set(pages)):
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def unpack(text):
    """Read what pack writes: "1-3, 7" becomes [1, 2, 3, 7]."""
    if not text.strip():
        return []
    pages = set()
    for piece in map(str.strip, text.split(",")):
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", piece)
        if not match:
            raise ValueError(f"not a page: '{piece}'")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last < first:
            raise ValueError(f"backwards range: '{piece}'")
        pages.update(range(first, last + 1))
    return sorted(pages)
