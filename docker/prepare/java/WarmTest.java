import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WarmTest {
    private List<Warm> warm;

    @BeforeEach
    void setUp() {
        warm = Warm.of(List.of("a b", "c"));
    }

    @Test
    void sorts() {
        assertThat(warm).containsExactly(new Warm("c", 1), new Warm("a b", 3));
        assertThat(warm.get(1).text()).isEqualTo("a_b (3)");
        assertThat(Warm.json(List.of("a"))).isEqualTo("[\"a\"]");
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3})
    void throwsBeyondTheEnd(int index) {
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> warm.get(index));
    }

    @Nested
    class Empty {
        @Test
        void isEmpty() {
            assertThat(Warm.of(List.of())).isEmpty();
        }
    }
}
