class FrontDesk {

    String greet(String name) {
        throw new UnsupportedOperationException("Write the method greet");
    }
}
