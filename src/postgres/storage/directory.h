// The directory of an index: its arrays with their extents, its options, its calibration.
#pragma once

#include "postgres/storage/free_pages.h"
#include "postgres/storage/page_source.h"
#include "protocol/parameters.h"

extern "C" {
#include "access/itup.h"
}

namespace pgwarp
{

// Names of arrays that only backends read: the included columns (included_tuple.h) and the keys of unplaced rows.
inline constexpr char array_unplaced[] = "unplaced";        // u64 [rows][1], keys of unplaced_row.h
inline constexpr char array_included[] = "included";        // u8 [rows][length] or [bytes][1]
inline constexpr char array_included_at[] = "included_at";  // u64 [rows][1]; absent when all lengths are equal
// The most bytes of an included tuple. A scan returns an index tuple with two more columns, which must fit too.
inline constexpr uint32 max_included_bytes = MAXALIGN_DOWN(INDEX_SIZE_MASK) - 4 * MAXIMUM_ALIGNOF;

inline constexpr uint32 chunk_bytes = 1U << 20;    // each chunk of an array has a crc32c
inline constexpr uint64 max_rows = PG_UINT32_MAX;  // of a segment: row numbers are u32
inline constexpr uint32 max_arrays = 64;

// An array in pages. Its bytes lie in order through the extents, page_capacity bytes a page; the last page may be part
// full.
struct StoredArray {
    ArrayShape shape;
    uint32 extent_count;
    uint32 chunk_count;
    Extent* extents;
    uint32* chunk_crc;
};

// Rows whose arrays lie in pages with one segment_id.
struct Segment {
    uint64 generation;  // of the metapage that named it
    uint64 segment_id;
    uint64 rows;
    StoredArray
        tombstones;  // u64 [ceil(rows / 64)][1], PageKind::tombstones, a crc in each page (bits change in place)
};

// The segment of unplaced rows (unplaced.h). An index of format 1 has none, so it has no rows here.
struct UnplacedSegment : Segment {
    StoredArray keys;        // no array if there are no rows
    StoredArray attributes;  // as in the other segment (array_attributes); no array in an index without attributes
};

// The segment of the rows that the engine knows, with their included columns.
struct PlacedSegment : Segment {
    StoredArray included;  // see included_tuple.h; no rows if there are no included columns
    StoredArray included_at;
};

// The directory is itself the segment of placed rows.
struct Directory : PlacedSegment {
    ParameterList options;
    Calibration calibration;
    uint32 array_count;
    uint32 trained_rows;  // rows of the build that trained the quantizers
    uint32 changed_rows;  // rows that have come or gone since the calibration was measured
    StoredArray* arrays;  // arrays for the engine, in load order
    UnplacedSegment unplaced;
};

// Reads and checks the directory (crc and bounds; the method checks kinds and lengths of arrays), and returns it,
// allocated in the current memory context. Null when the index has another generation by now.
Directory* read_directory(Relation index, const MetaPage& meta);

// Writes the directory to new pages and sets the meta's directory_* fields. The caller writes the metapage.
void write_directory(PageSource* pages, const Directory& directory, MetaPage* meta);

const StoredArray* find_array(const Directory& directory, const char* name);  // nullptr when absent

}  // namespace pgwarp
