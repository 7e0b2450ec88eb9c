import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.stream.Collectors;

class ParcelLockers {

    private static final int SMALL = 20;
    private static final int MEDIUM = 50;
    private static final int LARGE = 120;

    // From the smallest to the largest, so that the first which fits is the right one.
    private final List<Locker> lockers = new ArrayList<>();

    ParcelLockers(int small, int medium, int large) {
        if (small < 0 || medium < 0 || large < 0) {
            throw new IllegalArgumentException("number of lockers must not be negative");
        }
        build("S", small, SMALL);
        build("M", medium, MEDIUM);
        build("L", large, LARGE);
    }

    String store(String parcel, int litres) {
        if (find(parcel).isPresent()) {
            throw new IllegalArgumentException("already stored: " + parcel);
        }
        if (litres < 1 || litres > LARGE) {
            throw new IllegalArgumentException("bad volume: " + litres);
        }
        Locker locker = lockers.stream()
                .filter(candidate -> candidate.takes(litres))
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("no locker is free for " + parcel));
        locker.fill(parcel);
        return locker.name();
    }

    String collect(String parcel) {
        Locker locker = find(parcel).orElseThrow(() -> new NoSuchElementException("no such parcel: " + parcel));
        locker.clear();
        return locker.name();
    }

    List<String> contents() {
        return lockers.stream()
                .filter(locker -> !locker.isFree())
                .map(Locker::toString)
                .collect(Collectors.toList());
    }

    private void build(String letter, int count, int litres) {
        for (int number = 1; number <= count; number++) {
            lockers.add(new Locker(letter + number, litres));
        }
    }

    private Optional<Locker> find(String parcel) {
        return lockers.stream().filter(locker -> locker.holds(parcel)).findFirst();
    }
}
