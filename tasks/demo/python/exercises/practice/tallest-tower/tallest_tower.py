def tallest(heights):
    pass
