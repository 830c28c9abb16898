// The heap addresses of a bitmap (nodes/tidbitmap.h), in the form in which a search among their rows carries them.
#pragma once

#include "postgres/postgres_headers.h"

#include "protocol/format.h"
#include "protocol/tid_bitmap.h"

extern "C" {
#include "nodes/tidbitmap.h"
}

namespace pgwarp
{

struct SearchTids {
    uint64 number;  // names the bitmap in this session's requests
    uint64* words;  // protocol/tid_bitmap.h
    uint64 word_count;
    uint32* begin;  // of each page in the words
    uint64 page_count;
    uint64 lossy_pages;  // of which all rows are meant
    uint64 tids;         // on the other pages
};

// Reads all pages of a bitmap, into memory of the current context. Null when they take more words than a message of the
// protocol may have.
SearchTids* collect_tids(TIDBitmap* bitmap);

// Whether a row with this address is meant.
bool has_tid(const SearchTids& tids, const Tid& tid);

}  // namespace pgwarp
