package hedgerow;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * The files to skip: a bit for each file of an index, 0 to skip it. All lie below one folder, so names suffice. Of files
 * whose row groups the index describes, some row groups may be skipped, too.
 */
final class FileChoice {
    static final FileChoice NONE = of(List.of(), new long[0], new int[0], new long[0]);

    private final Map<String, Integer> places;
    private final long[] sizes;
    private final int[] firstGroups; // of each file, and their number at the end; empty if no row group is known
    private final long[] starts; // where each row group begins in its file
    private final String bits;
    private final String groupBits; // empty: no row group is skipped
    private final boolean skipsUnknown;

    private FileChoice(Map<String, Integer> places, long[] sizes, int[] firstGroups, long[] starts, String bits,
            String groupBits, boolean skipsUnknown) {
        this.places = places;
        this.sizes = sizes;
        this.firstGroups = firstGroups;
        this.starts = starts;
        this.bits = bits;
        this.groupBits = groupBits;
        this.skipsUnknown = skipsUnknown;
    }

    /**
     * Returns the choice that skips none of these files.
     *
     * @param groups the number of known row groups of each file; empty: none is known
     */
    static FileChoice of(List<String> names, long[] sizes, int[] groups, long[] starts) {
        Map<String, Integer> places = new HashMap<>();
        for (int place = 0; place < names.size(); place++) {
            places.put(names.get(place), place);
        }
        int[] firstGroups = new int[groups.length == 0 ? 0 : groups.length + 1];
        for (int place = 0; place < groups.length; place++) {
            firstGroups[place + 1] = firstGroups[place] + groups[place];
        }
        return new FileChoice(places, sizes, firstGroups, starts, "", "", false);
    }

    /** Returns the choice of these bits; skips nothing if their number differs from that of the files. */
    FileChoice where(String bits) {
        return where(bits, "");
    }

    /** Returns the same, with bits for all row groups; if their number differs, no row group is skipped. */
    FileChoice where(String bits, String groupBits) {
        boolean isFitting = bits.length() == sizes.length;
        return new FileChoice(places, sizes, firstGroups, starts, isFitting ? bits : "",
            isFitting && groupBits.length() == starts.length ? groupBits : "", false);
    }

    /** Returns the choice of the files with a 1, that also skips the files that the index does not know. */
    FileChoice only(String bits) {
        return new FileChoice(places, sizes, firstGroups, starts, bits, "", bits.length() == sizes.length);
    }

    /** Returns whether some row groups of files that are read are skipped. */
    boolean skipsGroups() {
        return !groupBits.isEmpty();
    }

    /**
     * Returns the row groups that are read of a file, each as the byte where it begins and the one after its end; null: all
     * of them.
     */
    long[] groups(String name, long bytes) {
        Integer place = skipsGroups() ? placeOf(name, bytes) : null;
        return place == null ? null : groups(place);
    }

    private long[] groups(int place) {
        int first = firstGroups[place];
        int last = firstGroups[place + 1];
        int[] read = IntStream.range(first, last).filter(group -> groupBits.charAt(group) == '1').toArray();
        if (read.length == last - first) {
            return null;
        }
        long[] ranges = new long[2 * read.length];
        for (int i = 0; i < read.length; i++) {
            ranges[2 * i] = read[i] == first ? 0 : starts[read[i]];
            ranges[2 * i + 1] = read[i] + 1 == last ? sizes[place] : starts[read[i] + 1];
        }
        return ranges;
    }

    /** Returns how many bytes of a listed file are read: all of them if the index does not know it. */
    long bytesRead(String name, long bytes) {
        if (skips(name, bytes)) {
            return 0;
        }
        long[] groups = groups(name, bytes);
        return groups == null ? bytes : total(groups);
    }

    static long total(long[] ranges) {
        return IntStream.range(0, ranges.length).mapToLong(i -> i % 2 == 0 ? -ranges[i] : ranges[i]).sum();
    }

    /** Returns which rows of the indexed files a scan reads. */
    Wire.ScannedRows scanned(List<ScannedFiles.Entry> files) {
        int[] listed = new int[sizes.length];
        Map<Integer, Long> deleted = new TreeMap<>();
        for (ScannedFiles.Entry file : files) {
            Integer place = placeOf(file.name(), file.bytes());
            if (place != null) {
                listed[place]++;
                if (file.deleted() != 0) {
                    deleted.put(place, file.deleted());
                }
            }
        }
        int[] runs = IntStream.rangeClosed(0, listed.length)
            .filter(place -> isOne(listed, place) != isOne(listed, place - 1))
            .toArray();
        return new Wire.ScannedRows(runs, deleted.keySet().stream().mapToInt(Integer::intValue).toArray(),
            deleted.values().stream().mapToLong(Long::longValue).toArray());
    }

    private static boolean isOne(int[] times, int place) {
        return place >= 0 && place < times.length && times[place] == 1;
    }

    /** Returns the number of files that plain readers see. */
    long visibleFiles() {
        return places.keySet().stream().filter(name -> !name.startsWith("_hedgerow/")).count();
    }

    /** Returns whether the index has this file. */
    boolean knows(String name, long bytes) {
        return placeOf(name, bytes) != null;
    }

    /** Returns the number of a file, its place in the index. */
    int numberOf(String name, long bytes) {
        Integer place = placeOf(name, bytes);
        return place == null ? ReadFiles.UNKNOWN : place;
    }

    int count() {
        return sizes.length;
    }

    /** Returns the bytes that are read of the file with this number. */
    long bytesOf(int number) {
        long[] groups = skipsGroups() ? groups(number) : null;
        return groups == null ? sizes[number] : total(groups);
    }

    /** Returns the file's place in the index; null if the index has no file of this name and size. */
    private Integer placeOf(String name, long bytes) {
        Integer place = places.get(name);
        return place != null && sizes[place] == bytes ? place : null;
    }

    boolean skips(String name, long bytes) {
        if (bits.isEmpty() && !skipsUnknown) {
            return false; // without looking the file up
        }
        Integer place = placeOf(name, bytes);
        return place == null ? skipsUnknown : !bits.isEmpty() && bits.charAt(place) == '0';
    }

    /** Returns whether the file with this number is skipped. */
    boolean skips(int number) {
        return !bits.isEmpty() && bits.charAt(number) == '0';
    }

    boolean skipsAny(List<ScannedFiles.Entry> files) {
        return files.stream().anyMatch(file -> skips(file.name(), file.bytes()));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof FileChoice choice && choice.bits.equals(bits)
            && choice.groupBits.equals(groupBits) && choice.places.equals(places) && choice.skipsUnknown == skipsUnknown
            && Arrays.equals(choice.sizes, sizes) && Arrays.equals(choice.starts, starts);
    }

    @Override
    public int hashCode() {
        return 31 * bits.hashCode() + groupBits.hashCode();
    }

    @Override
    public String toString() {
        long groups = groupBits.chars().filter(bit -> bit == '0').count();
        return bits.chars().filter(bit -> bit == '0').count() + " files"
            + (skipsGroups() ? ", " + groups + " row groups" : "");
    }
}
