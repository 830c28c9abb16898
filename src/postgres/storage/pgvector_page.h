// Index files of pgvector, which a server finds in indexes named hnsw and ivfflat when pgwarp's package has taken the
// place of pgvector's.
#pragma once

#include "postgres/storage/page.h"

namespace pgwarp
{

// Whether a page is the metapage of an hnsw or ivfflat index of pgvector.
bool is_page_of_pgvector(Page page);
// Whether block 0 of an index is one. False for a file without blocks.
bool is_file_of_pgvector(Relation index);

}  // namespace pgwarp
