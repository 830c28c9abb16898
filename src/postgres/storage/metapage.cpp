// Reads, checks and writes the metapage.
#include "postgres/storage/metapage.h"

#include <cstddef>

#include "postgres/storage/checksum.h"
#include "postgres/storage/pgvector_page.h"

namespace pgwarp
{

// The fields that follow the last log.
struct MetaPageEnd {
    NormRange norms;
    uint32 crc;
};
static_assert(sizeof(MetaPageEnd) == 2 * sizeof(uint32));
static_assert(sizeof(MetaPage) + sizeof(MetaPageEnd) <= page_capacity);

// The number of bytes of fields that a metapage of this format has.
static uint32 kept_bytes(const MetaPage& meta)
{
    return static_cast<uint32>(offsetof(MetaPage, logs) + count_logs(meta) * sizeof(LogStart));
}

void put_metapage(Page page, const MetaPage& meta)
{
    char* const content = page_content(page);
    const uint32 kept = kept_bytes(meta);
    MetaPageEnd end = {meta.norms, 0};
    memcpy(content, &meta, kept);
    memcpy(content + kept, &end, sizeof(end));
    end.crc = bytes_crc(content, kept + offsetof(MetaPageEnd, crc));
    memcpy(content + kept, &end, sizeof(end));
    set_page_content_bytes(page, kept + static_cast<uint32>(sizeof(end)));
}

// The fields of the metapage in a page, unchecked.
static MetaPage get_metapage(Page page)
{
    MetaPage meta;
    memset(static_cast<void*>(&meta), 0, sizeof(meta));
    memcpy(static_cast<void*>(&meta), page_content(page), offsetof(MetaPage, logs));
    const uint32 kept = kept_bytes(meta);
    memcpy(static_cast<void*>(&meta), page_content(page), kept);
    memcpy(&meta.norms, page_content(page) + kept, sizeof(meta.norms));
    return meta;
}

// Whether the content ends in the crc of all bytes before it, as in metapages of every format and length.
static bool content_has_crc(Page page)
{
    const uint32 bytes = page_content_bytes(page);
    if (bytes < offsetof(MetaPage, shape)) return false;
    uint32 stored;
    memcpy(&stored, page_content(page) + bytes - sizeof(stored), sizeof(stored));
    return stored == bytes_crc(page_content(page), bytes - sizeof(stored));
}

// Raise an error unless the page is a metapage of a format that this library reads.
static void check_metapage(Relation index, Page page, const MetaPage& meta)
{
    if (is_page_of_pgvector(page)) {
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("index \"%s\" was built by pgvector", RelationGetRelationName(index)), errhint("REINDEX it.")));
    }
    if (!page_is_sane(page) || page_trailer(page)->kind != static_cast<uint16>(PageKind::meta)) {
        report_corruption(index, metapage_block, "block 0 is not a pgwarp metapage");
    }
    if (meta.magic != meta_magic) report_corruption(index, metapage_block, "the metapage has a wrong magic number");
    if (!content_has_crc(page)) report_corruption(index, metapage_block, "the metapage's checksum does not match");
    if (meta.format_version == 0 || meta.format_version > meta_format_version) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("index \"%s\" has storage format %u, this pgwarp reads formats up to %u",
                               RelationGetRelationName(index), meta.format_version, meta_format_version),
                        errhint("REINDEX it, or install the pgwarp release that wrote it.")));
    }
    const uint32 bytes = kept_bytes(meta) + static_cast<uint32>(sizeof(MetaPageEnd));
    if (page_content_bytes(page) != bytes || page_trailer(page)->segment_id != meta.generation) {
        report_corruption(index, metapage_block, "the metapage has a wrong length or generation");
    }
    const bool dense = !is_list(meta.shape.element);
    if (dense && (meta.shape.dimensions == 0 || meta.shape.dimensions > max_dimensions)) {
        report_corruption(index, metapage_block, "the metapage holds an impossible number of dimensions");
    }
    if (meta.shape.attribute_count > max_attributes) {
        report_corruption(index, metapage_block, "the metapage holds an impossible number of attributes");
    }
}

static Buffer lock_metapage(Relation index, int lock_mode)
{
    return read_frequent_page(index, metapage_block, lock_mode);
}

uint64 random_generation()
{
    return placed_generation(random_number64()) | 1;
}

uint64 next_generation(uint64 generation)
{
    const uint64 next = generation + 1;
    return placed_generation(next) == placed_generation(generation) ? next : random_generation();
}

// Raises an error for an index that this transaction is building: a function in its expression or predicate reads it.
// Other sessions do not see it, so an empty file that they find is damaged.
static void check_built(Relation index)
{
    if (index->rd_createSubid == InvalidSubTransactionId || index->rd_amcache != nullptr) return;
    if (RelationGetNumberOfBlocks(index) > 0) return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("index \"%s\" is being built", RelationGetRelationName(index)),
                    errhint("Functions in its expression and predicate cannot read it.")));
}

MetaPage read_metapage(Relation index)
{
    check_built(index);
    const Buffer buffer = lock_metapage(index, BUFFER_LOCK_SHARE);
    Page page = BufferGetPage(buffer);
    const MetaPage meta = get_metapage(page);
    check_metapage(index, page, meta);
    UnlockReleaseBuffer(buffer);
    return meta;
}

void switch_metapage(Relation index, const MetaPage& meta)
{
    const Buffer buffer = lock_metapage(index, BUFFER_LOCK_EXCLUSIVE);
    GenericXLogState* state = GenericXLogStart(index);
    Page page = GenericXLogRegisterBuffer(state, buffer, 0);
    MetaPage next = meta;
    next.norms = join_ranges(meta.norms, get_metapage(page).norms);
    put_metapage(page, next);
    page_trailer(page)->segment_id = meta.generation;
    GenericXLogFinish(state);
    UnlockReleaseBuffer(buffer);
}

// Changes the metapage in one WAL record. `change` is called with the metapage as it is.
template <class Change>
static MetaPage change_metapage(Relation index, Change change)
{
    const Buffer buffer = lock_metapage(index, BUFFER_LOCK_EXCLUSIVE);
    GenericXLogState* state = GenericXLogStart(index);
    Page page = GenericXLogRegisterBuffer(state, buffer, 0);
    MetaPage meta = get_metapage(page);
    check_metapage(index, page, meta);
    change(&meta);
    put_metapage(page, meta);
    GenericXLogFinish(state);
    UnlockReleaseBuffer(buffer);
    return meta;
}

uint64 bump_tombstone_version(Relation index)
{
    return change_metapage(index, [](MetaPage* meta) { meta->tombstone_version++; }).tombstone_version;
}

void widen_norms(Relation index, NormRange norms)
{
    change_metapage(index, [norms](MetaPage* meta) { meta->norms = join_ranges(meta->norms, norms); });
}

}  // namespace pgwarp
