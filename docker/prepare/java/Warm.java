import io.reactivex.Observable;
import java.util.List;
import java.util.stream.Collectors;
import org.json.JSONArray;

/** Uses a bit of everything that solutions use, for what is loaded here is what the class archives hold. */
record Warm(String name, int length) {
    static List<Warm> of(List<String> names) {
        return names.stream().map(name -> new Warm(name, name.length())).sorted((a, b) -> a.length - b.length)
                .collect(Collectors.toList());
    }

    String text() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) {
            text.append(switch (name.charAt(i)) {
                case ' ' -> "_";
                default -> name.substring(i, i + 1);
            });
        }
        return String.format("%s (%d)", text, length);
    }

    static String json(List<String> names) {
        return new JSONArray(Observable.fromIterable(names).toList().blockingGet()).toString();
    }
}
