// Which pages of an index are in use, and by what: found by following everything that the metapage leads to.
#pragma once

#include "postgres/storage/delta_log.h"
#include "postgres/storage/directory.h"

namespace pgwarp
{

enum class PageOwner : uint8 { nobody = 0, metapage, directory, array, tombstones, log, free_list, free };

struct PageMap {
    BlockNumber blocks;  // those of the relation when the map was begun; later ones are left out
    PageOwner* owners;   // [blocks]
};

// Maps the pages that this generation uses. The caller keeps VACUUM and merges out, or passes a `strict` of false and
// checks afterwards that the generation is still the same; inserts go on meanwhile: a page that one of them takes stays
// mapped as free, or is mapped as the log's. Raises ERRCODE_INDEX_CORRUPTED for a page used twice, or, when `strict`,
// for one that lies past the end.
PageMap map_pages(Relation index, const MetaPage& meta, const Directory& directory, bool strict);

uint64 count_pages(const PageMap& map, PageOwner owner);

}  // namespace pgwarp
