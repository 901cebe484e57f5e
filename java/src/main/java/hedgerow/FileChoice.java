package hedgerow;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** The files to skip: a bit for each file of an index, 0 to skip it. All lie below one folder, so names suffice. */
final class FileChoice {
    static final FileChoice NONE = of(List.of(), new long[0]);

    private final Map<String, Integer> places;
    private final long[] sizes;
    private final String bits;
    private final boolean skipsUnknown;

    private FileChoice(Map<String, Integer> places, long[] sizes, String bits, boolean skipsUnknown) {
        this.places = places;
        this.sizes = sizes;
        this.bits = bits;
        this.skipsUnknown = skipsUnknown;
    }

    /** Returns the choice that skips none of these files. */
    static FileChoice of(List<String> names, long[] sizes) {
        Map<String, Integer> places = new HashMap<>();
        for (int place = 0; place < names.size(); place++) {
            places.put(names.get(place), place);
        }
        return new FileChoice(places, sizes, "", false);
    }

    /** Returns the choice of these bits; skips nothing if their number differs from that of the files. */
    FileChoice where(String bits) {
        return new FileChoice(places, sizes, bits.length() == sizes.length ? bits : "", false);
    }

    /** Returns the choice of the files with a 1, that also skips the files that the index does not know. */
    FileChoice only(String bits) {
        return new FileChoice(places, sizes, bits, bits.length() == sizes.length);
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

    long bytesOf(int number) {
        return sizes[number];
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
        return other instanceof FileChoice choice && choice.bits.equals(bits) && choice.places.equals(places)
            && choice.skipsUnknown == skipsUnknown && Arrays.equals(choice.sizes, sizes);
    }

    @Override
    public int hashCode() {
        return bits.hashCode();
    }

    @Override
    public String toString() {
        return bits.chars().filter(bit -> bit == '0').count() + " files";
    }
}
