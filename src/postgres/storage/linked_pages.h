// Maps the pages of an index to their users, by following all links from the metapage.
#pragma once

#include "postgres/storage/delta_log.h"
#include "postgres/storage/directory.h"

namespace pgwarp
{

enum class PageOwner : uint8 { nobody = 0, metapage, directory, array, tombstones, log, free_list, free };

struct PageMap {
    BlockNumber blocks;  // blocks of the relation when the map was begun; later ones are not mapped
    PageOwner* owners;   // [blocks]
};

// Maps the pages that this generation uses. The caller keeps VACUUM and merges out, or passes strict = false and checks
// afterwards that the generation is the same. Inserts go on meanwhile: a page that an insert takes is mapped as free or
// as the log's. Raises ERRCODE_INDEX_CORRUPTED for a page used twice, or, when `strict`, for a page past the end.
PageMap map_pages(Relation index, const MetaPage& meta, const Directory& directory, bool strict);

uint64 count_pages(const PageMap& map, PageOwner owner);

}  // namespace pgwarp
