package hedgerow;

import java.util.BitSet;

/** The files of a scan that are left once the keys of joins have chosen at run time. */
final class ReadFiles {
    /** The number of a file that the index does not know. */
    static final int UNKNOWN = -1;

    private final BitSet skipped = new BitSet();
    private long bytes; // of these files
    private long keys = -1; // before they choose
    private double seconds;

    synchronized void skip(int file, long size) {
        if (!skipped.get(file)) {
            skipped.set(file);
            bytes += size;
        }
    }

    /** Notes that so many keys choose, and how long that took. */
    synchronized void choose(long keys, double seconds) {
        this.keys = keys;
        this.seconds = seconds;
    }

    /** Returns the decision with what it left at run time. */
    synchronized Wire.ScanReport of(Wire.ScanReport planned) {
        return keys < 0 ? planned : planned.after(skipped.cardinality(), bytes, keys, seconds);
    }
}
