class FrontDesk {

    String greet(String name) {
        return "Welcome, " + name + "!";
    }
}
