def mirror(word):
    return word[::-1]
