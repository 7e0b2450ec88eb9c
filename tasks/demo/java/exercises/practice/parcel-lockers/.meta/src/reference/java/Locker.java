/** One locker, which is free or holds one parcel. */
class Locker {

    private final String name;
    private final int litres;
    private String parcel;

    Locker(String name, int litres) {
        this.name = name;
        this.litres = litres;
    }

    String name() {
        return name;
    }

    boolean isFree() {
        return parcel == null;
    }

    boolean takes(int volume) {
        return isFree() && volume <= litres;
    }

    boolean holds(String wanted) {
        return wanted.equals(parcel);
    }

    void fill(String newParcel) {
        parcel = newParcel;
    }

    void clear() {
        parcel = null;
    }

    @Override
    public String toString() {
        return name + ": " + parcel;
    }
}
