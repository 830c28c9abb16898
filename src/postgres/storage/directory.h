// The directory of an index: its arrays and where they lie, its options as they came out, its calibration.
#pragma once

#include "postgres/storage/free_pages.h"
#include "postgres/storage/page_source.h"
#include "protocol/parameters.h"

extern "C" {
#include "access/itup.h"
}

namespace pgwarp
{

// Arrays of the included columns (included_tuple.h).
// Names of arrays that only backends read.
inline constexpr char array_unplaced[] = "unplaced";        // u64 [rows][1], keys of unplaced_row.h
inline constexpr char array_included[] = "included";        // u8 [rows][length] or [bytes][1]
inline constexpr char array_included_at[] = "included_at";  // u64 [rows][1]; absent when all lengths are equal
// Of an index tuple; what a scan returns has two columns more.
inline constexpr uint32 max_included_bytes = MAXALIGN_DOWN(INDEX_SIZE_MASK) - 4 * MAXIMUM_ALIGNOF;

inline constexpr uint32 chunk_bytes = 1U << 20;    // a crc32c is kept for each chunk of an array
inline constexpr uint64 max_rows = PG_UINT32_MAX;  // of a segment: a row number is a u32
inline constexpr uint32 max_arrays = 64;

// An array in pages: content bytes in order through its extents, page_capacity bytes a page, the last page partly used.
struct StoredArray {
    ArrayShape shape;
    uint32 extent_count;
    uint32 chunk_count;
    Extent* extents;
    uint32* chunk_crc;
};

// Rows whose arrays lie in pages of one identity.
struct Segment {
    uint64 generation;  // of the metapage that named it
    uint64 segment_id;
    uint64 rows;
    StoredArray
        tombstones;  // u64 [ceil(rows / 64)][1], PageKind::tombstones, a crc in each page (bits change in place)
};

// See unplaced.h; without rows in an index of format 1.
struct UnplacedSegment : Segment {
    StoredArray keys;  // absent without rows
};

// The rows that the engine knows are the directory's own segment.
struct Directory : Segment {
    ParameterList options;
    Calibration calibration;
    uint32 array_count;
    uint32 trained_rows;   // of the build that made what rows are encoded with
    uint32 changed_rows;   // that have come or gone since the calibration was measured
    StoredArray* arrays;   // the engine's, in load order
    StoredArray included;  // see included_tuple.h; without rows where there are no included columns
    StoredArray included_at;
    UnplacedSegment unplaced;
};

// Reads, checks (crc, bounds; kinds and lengths of arrays are the method's to check) and returns the directory,
// allocated in the current memory context. Null when the index has another generation by now.
Directory* read_directory(Relation index, const MetaPage& meta);

// Lays the directory down in new pages; fills the meta's directory_* fields (the caller writes the metapage).
void write_directory(PageSource* pages, const Directory& directory, MetaPage* meta);

const StoredArray* find_array(const Directory& directory, const char* name);  // nullptr when absent

}  // namespace pgwarp
