// The bitmap's pages, and their cache.
#include "postgres/build/tid_file.h"

extern "C" {
#include "access/htup_details.h"
#include "storage/buffile.h"
#include "utils/resowner.h"
}

namespace pgwarp
{

// A cached page of the bitmap.
struct CachedPage {
    int64 number;  // -1: unused
    bool changed;
    char bits[BLCKSZ];
};

struct TidFile {
    BufFile* file;
    int64 length;  // number of pages in the file
    int64 cached;
    CachedPage* pages;  // [cached]; page n of the file is cached at n % cached
};

namespace
{

constexpr Size fewest_pages = 4;
constexpr int64 block_bits = (MaxHeapTuplesPerPage + 7) / 8 * 8;
constexpr int64 blocks_of_page = int64{BLCKSZ} * 8 / block_bits;

int64 page_number(Tid tid)
{
    return tid.block / blocks_of_page;
}

void seek_page(const TidFile* file, int64 number)
{
    if (BufFileSeekBlock(file->file, number) != 0) {
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not seek to block " INT64_FORMAT " of temporary file", number)));
    }
}

void write_page(TidFile* file, CachedPage* page)
{
    seek_page(file, page->number);
    BufFileWrite(file->file, page->bits, BLCKSZ);
    page->changed = false;
}

// Append empty pages to the file up to this page.
void extend_file(TidFile* file, int64 number)
{
    PGAlignedBlock empty;
    memset(empty.data, 0, BLCKSZ);
    seek_page(file, file->length);
    while (file->length <= number) {
        CHECK_FOR_INTERRUPTS();
        BufFileWrite(file->file, empty.data, BLCKSZ);
        file->length++;
    }
}

void read_page(const TidFile* file, int64 number, CachedPage* page)
{
    seek_page(file, number);
#if PG_VERSION_NUM >= 160000
    BufFileReadExact(file->file, page->bits, BLCKSZ);
#else
    if (BufFileRead(file->file, page->bits, BLCKSZ) != BLCKSZ) {
        ereport(ERROR, (errcode_for_file_access(), errmsg("could not read from temporary file")));
    }
#endif
    page->number = number;
}

// The cached copy of a page of the file.
CachedPage* get_page(TidFile* file, int64 number)
{
    CachedPage* page = &file->pages[number % file->cached];
    if (page->number == number) return page;
    if (page->changed) write_page(file, page);
    page->number = -1;
    read_page(file, number, page);
    return page;
}

char* byte_of(CachedPage* page, Tid tid, char* bit)
{
    const int64 place = tid.block % blocks_of_page * block_bits + tid.offset - 1;
    *bit = static_cast<char>(1 << (place % 8));
    return &page->bits[place / 8];
}

}  // namespace

const uint16 tid_file_offsets = static_cast<uint16>(block_bits);

TidFile* create_tid_file(ResourceOwner owner, Size bytes)
{
    auto* file = static_cast<TidFile*>(palloc0(sizeof(TidFile)));
    file->cached = static_cast<int64>(Max(bytes / sizeof(CachedPage), fewest_pages));
    file->pages = static_cast<CachedPage*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(CachedPage) * static_cast<Size>(file->cached)));
    for (int64 i = 0; i < file->cached; ++i) {
        file->pages[i].number = -1;
        file->pages[i].changed = false;
    }
    ResourceOwner current = CurrentResourceOwner;
    CurrentResourceOwner = owner;
    file->file = BufFileCreateTemp(false);
    CurrentResourceOwner = current;
    return file;
}

void close_tid_file(TidFile* file)
{
    BufFileClose(file->file);
    pfree(file->pages);
    pfree(file);
}

bool add_to_tid_file(TidFile* file, Tid tid)
{
    const int64 number = page_number(tid);
    if (number >= file->length) extend_file(file, number);
    CachedPage* page = get_page(file, number);
    char bit = 0;
    char* byte = byte_of(page, tid, &bit);
    if ((*byte & bit) != 0) return false;
    *byte = static_cast<char>(*byte | bit);
    page->changed = true;
    return true;
}

bool tid_file_has(TidFile* file, Tid tid)
{
    const int64 number = page_number(tid);
    if (number >= file->length) return false;
    char bit = 0;
    return (*byte_of(get_page(file, number), tid, &bit) & bit) != 0;
}

}  // namespace pgwarp
