#include "postgres/bitmap/search_tids.h"

namespace pgwarp
{

namespace
{

constexpr uint64 first_pages = 256;  // for which there is room at first
constexpr uint64 most_of_page = 1 + most_page_words;

// Words and pages that grow.
struct Collector {
    SearchTids* tids;
    uint64 word_capacity;
    uint64 page_capacity;
};

template <class Item>
Item* make_room(Item* items, uint64 needed, uint64* capacity)
{
    if (needed <= *capacity) return items;
    *capacity = Max(2 * *capacity, needed);
    return static_cast<Item*>(repalloc_huge(items, sizeof(Item) * *capacity));
}

// Appends a page without rows told apart, and returns room for the bits.
uint64* append_page(Collector* collector, BlockNumber block)
{
    SearchTids* tids = collector->tids;
    tids->words = make_room(tids->words, tids->word_count + most_of_page, &collector->word_capacity);
    tids->begin = make_room(tids->begin, tids->page_count + 1, &collector->page_capacity);
    tids->begin[tids->page_count++] = static_cast<uint32>(tids->word_count);
    tids->words[tids->word_count++] = block;
    return tids->words + tids->word_count;
}

void append_lossy_page(Collector* collector, BlockNumber block)
{
    append_page(collector, block);
    collector->tids->lossy_pages++;
}

// offsets: ascending, at least one.
void append_exact_page(Collector* collector, BlockNumber block, const OffsetNumber* offsets, int count)
{
    uint64* bits = append_page(collector, block);
    const uint32 words = (offsets[count - 1] - FirstOffsetNumber) / 64 + 1;
    memset(bits, 0, sizeof(uint64) * words);
    for (int i = 0; i < count; ++i) {
        const uint32 bit = offsets[i] - FirstOffsetNumber;
        bits[bit / 64] |= uint64{1} << (bit % 64);
    }
    bits[-1] |= uint64{words} << 32;
    collector->tids->word_count += words;
    collector->tids->tids += static_cast<uint64>(count);
}

#if PG_VERSION_NUM >= 180000

// Calls visit(block, offsets, count) for each page in order, with a count of -1 for one of which all rows are meant.
// Ends when it returns false.
template <class Visit>
void visit_pages(TIDBitmap* bitmap, Visit&& visit)
{
    OffsetNumber offsets[TBM_MAX_TUPLES_PER_PAGE];
    TBMIterator iterator = tbm_begin_iterate(bitmap, nullptr, InvalidDsaPointer);
    TBMIterateResult page;
    bool more = true;
    while (more && tbm_iterate(&iterator, &page)) {
        const int count = page.lossy ? -1 : tbm_extract_page_tuple(&page, offsets, TBM_MAX_TUPLES_PER_PAGE);
        more = visit(page.blockno, offsets, count);
    }
    tbm_end_iterate(&iterator);
}

#else

template <class Visit>
void visit_pages(TIDBitmap* bitmap, Visit&& visit)
{
    TBMIterator* iterator = tbm_begin_iterate(bitmap);
    const TBMIterateResult* page = nullptr;
    bool more = true;
    while (more && (page = tbm_iterate(iterator)) != nullptr) more = visit(page->blockno, page->offsets, page->ntuples);
    tbm_end_iterate(iterator);
}

#endif

}  // namespace

SearchTids* collect_tids(TIDBitmap* bitmap)
{
    static uint64 last_number = no_tids;
    auto* tids = static_cast<SearchTids*>(palloc0(sizeof(SearchTids)));
    Collector collector = {tids, first_pages * 2, first_pages};
    collector.word_capacity = Max(collector.word_capacity, most_of_page);
    tids->words = static_cast<uint64*>(palloc(sizeof(uint64) * collector.word_capacity));
    tids->begin = static_cast<uint32*>(palloc(sizeof(uint32) * collector.page_capacity));
    visit_pages(bitmap, [&](BlockNumber block, const OffsetNumber* offsets, int count) {
        CHECK_FOR_INTERRUPTS();
        if (count < 0) {
            append_lossy_page(&collector, block);
        } else if (count > 0) {
            append_exact_page(&collector, block, offsets, count);
        }
        return tids->word_count <= max_tid_bitmap_words;
    });
    if (tids->word_count > max_tid_bitmap_words) return nullptr;
    tids->number = ++last_number;
    return tids;
}

bool has_tid(const SearchTids& tids, const Tid& tid)
{
    uint64 begin = 0;
    uint64 end = tids.page_count;  // the first page behind that of the row
    while (begin < end) {
        const uint64 middle = begin + (end - begin) / 2;
        if (static_cast<uint32>(tids.words[tids.begin[middle]]) <= tid.block) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    if (end == 0) return false;
    const TidPage page = front_page({tids.words + tids.begin[end - 1], tids.word_count - tids.begin[end - 1]});
    return page.block == tid.block && page.contains(tid.offset);
}

}  // namespace pgwarp
