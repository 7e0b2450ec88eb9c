def is_even(number):
    pass
