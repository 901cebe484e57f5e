package hedgerow;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The files to skip: those of an index with a 0 at their place. All lie below one folder, so names suffice. */
final class FileChoice {
    static final FileChoice NONE = of(List.of(), new long[0]);

    private final Map<String, Integer> places;
    private final long[] sizes;
    private final String bits;

    private FileChoice(Map<String, Integer> places, long[] sizes, String bits) {
        this.places = places;
        this.sizes = sizes;
        this.bits = bits;
    }

    /** Returns the choice that skips none of these files. */
    static FileChoice of(List<String> names, long[] sizes) {
        Map<String, Integer> places = new HashMap<>();
        for (int place = 0; place < names.size(); place++) {
            places.put(names.get(place), place);
        }
        return new FileChoice(places, sizes, "");
    }

    /** Returns the choice of these bits; skips nothing if their number differs from that of the files. */
    FileChoice where(String bits) {
        return new FileChoice(places, sizes, bits.length() == sizes.length ? bits : "");
    }

    /** Returns the number of files that plain readers see. */
    long visibleFiles() {
        return places.keySet().stream().filter(name -> !name.startsWith("_hedgerow/")).count();
    }

    /** Returns whether the index has this file; a file of another size is another file. */
    boolean knows(String name, long bytes) {
        Integer place = places.get(name);
        return place != null && sizes[place] == bytes;
    }

    boolean skips(String name, long bytes) {
        return !bits.isEmpty() && knows(name, bytes) && bits.charAt(places.get(name)) == '0';
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof FileChoice choice && choice.bits.equals(bits) && choice.places.equals(places)
            && Arrays.equals(choice.sizes, sizes);
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
