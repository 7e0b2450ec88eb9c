import re
import unicodedata
from collections import Counter


def tally(text):
    tags = re.findall(r"(?<!\S)#(\w+)", unicodedata.normalize("NFC", text))
    counts = Counter(tag.casefold() for tag in tags)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
