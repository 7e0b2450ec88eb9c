import java.util.List;

class ParcelLockers {

    ParcelLockers(int small, int medium, int large) {
        throw new UnsupportedOperationException("Write the constructor");
    }

    String store(String parcel, int litres) {
        throw new UnsupportedOperationException("Write the method store");
    }

    String collect(String parcel) {
        throw new UnsupportedOperationException("Write the method collect");
    }

    List<String> contents() {
        throw new UnsupportedOperationException("Write the method contents");
    }
}
