import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

public class FrontDeskTest {

    private final FrontDesk desk = new FrontDesk();

    @Test
    public void greetsAGuestByName() {
        assertThat(desk.greet("Ada")).isEqualTo("Welcome, Ada!");
        assertThat(desk.greet("Bo")).isEqualTo("Welcome, Bo!");
    }

    @Test
    public void aNameMayHaveSeveralWords() {
        assertThat(desk.greet("Mr Fox")).isEqualTo("Welcome, Mr Fox!");
        assertThat(desk.greet("Anna Maria Lind")).isEqualTo("Welcome, Anna Maria Lind!");
    }

    @Test
    public void theNameIsLeftAsGiven() {
        assertThat(desk.greet("mcGEE")).isEqualTo("Welcome, mcGEE!");
        assertThat(desk.greet("100% Sam")).isEqualTo("Welcome, 100% Sam!");
    }

    @Test
    public void anEmptyNameIsGreetedToo() {
        assertThat(desk.greet("")).isEqualTo("Welcome, !");
    }
}
