def mirror(word):
    pass
