// Writes records in the form of PostgreSQL's generic WAL.
#include "postgres/storage/content_record.h"

extern "C" {
#include "access/generic_xlog.h"
#include "access/rmgr.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "utils/rel.h"
}

namespace pgwarp
{

namespace
{

constexpr uint32 worth_comparing = 256;  // bytes that replace existing bytes

// Whether a change replaces many existing bytes, some of which may stay equal.
bool replaces_much(const ContentChange& change)
{
    const uint32 present = page_content_bytes(BufferGetPage(change.buffer));
    return change.length > worth_comparing && change.within + change.length <= present;
}

// Have PostgreSQL compare the pages, which logs fewer bytes.
void write_compared(Relation index, const ContentChange* changes, uint32 count)
{
    GenericXLogState* state = GenericXLogStart(index);
    for (uint32 i = 0; i < count; ++i) {
        Page page = GenericXLogRegisterBuffer(state, changes[i].buffer, 0);
        memcpy(page_content(page) + changes[i].within, changes[i].bytes, changes[i].length);
        set_page_content_bytes(page, changes[i].within + changes[i].length);
    }
    GenericXLogFinish(state);
}

// The record's data for a page: fragments of an offset, a length and bytes, as applyPageRedo() of PostgreSQL's
// generic_xlog.c reads them. The first fragment sets pd_lower, the second the content, whose bytes follow.
struct PageFragments {
    OffsetNumber lower_offset;
    OffsetNumber lower_length;
    LocationIndex lower;
    OffsetNumber content_offset;
    OffsetNumber content_length;
};
static_assert(sizeof(PageFragments) == 10);
static_assert(most_content_changes <= MAX_GENERIC_XLOG_PAGES);

PageFragments fragments_of(const ContentChange& change)
{
    const uint32 offset = MAXALIGN(SizeOfPageHeaderData) + change.within;
    return {offsetof(PageHeaderData, pd_lower), sizeof(LocationIndex),
            static_cast<LocationIndex>(offset + change.length), static_cast<OffsetNumber>(offset),
            static_cast<OffsetNumber>(change.length)};
}

void change_page(const ContentChange& change, const PageFragments& fragments)
{
    Page page = BufferGetPage(change.buffer);
    const PageHeader header = reinterpret_cast<PageHeader>(page);
    memcpy(page + fragments.content_offset, change.bytes, change.length);
    // Replay zeroes the bytes behind the content, so this does too.
    if (header->pd_lower > fragments.lower) memset(page + fragments.lower, 0, header->pd_lower - fragments.lower);
    header->pd_lower = fragments.lower;
    MarkBufferDirty(change.buffer);
}

void register_change(uint8 number, const ContentChange& change, const PageFragments& fragments)
{
    XLogRegisterBuffer(number, change.buffer, REGBUF_STANDARD);
    XLogRegisterBufData(number, reinterpret_cast<char*>(const_cast<PageFragments*>(&fragments)), sizeof(fragments));
    XLogRegisterBufData(number, static_cast<char*>(const_cast<void*>(change.bytes)), change.length);
}

}  // namespace

void write_contents(Relation index, const ContentChange* changes, uint32 count)
{
    for (uint32 i = 0; i < count; ++i) {
        if (replaces_much(changes[i])) return write_compared(index, changes, count);
    }
    PageFragments fragments[most_content_changes];
    for (uint32 i = 0; i < count; ++i) fragments[i] = fragments_of(changes[i]);
    const bool logged = RelationNeedsWAL(index);
    if (logged) XLogBeginInsert();
    START_CRIT_SECTION();
    for (uint32 i = 0; i < count; ++i) {
        change_page(changes[i], fragments[i]);
        if (logged) register_change(static_cast<uint8>(i), changes[i], fragments[i]);
    }
    if (logged) {
        const XLogRecPtr end = XLogInsert(RM_GENERIC_ID, 0);
        for (uint32 i = 0; i < count; ++i) PageSetLSN(BufferGetPage(changes[i].buffer), end);
    }
    END_CRIT_SECTION();
}

}  // namespace pgwarp
