def tallest(heights):
    return max(heights)
