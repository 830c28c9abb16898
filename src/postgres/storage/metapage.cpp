#include "postgres/storage/metapage.h"

#include <cstddef>

#include "postgres/storage/checksum.h"

namespace pgwarp
{

static_assert(sizeof(MetaPage) <= page_capacity && offsetof(MetaPage, crc) == sizeof(MetaPage) - sizeof(uint32));

uint32 metapage_crc(const MetaPage& meta)
{
    return bytes_crc(&meta, offsetof(MetaPage, crc));
}

// Whether the content ends in the crc of what is before it. That holds for metapages of every format and length.
static bool content_has_crc(Page page)
{
    const uint32 bytes = page_content_bytes(page);
    if (bytes < offsetof(MetaPage, shape)) return false;
    uint32 stored;
    memcpy(&stored, page_content(page) + bytes - sizeof(stored), sizeof(stored));
    return stored == bytes_crc(page_content(page), bytes - sizeof(stored));
}

// Raise an error unless the page's content is a metapage of a format that this library reads.
static void check_metapage(Relation index, Page page, const MetaPage& meta)
{
    if (!page_is_sane(page) || page_trailer(page)->kind != static_cast<uint16>(PageKind::meta)) {
        report_corruption(index, metapage_block, "block 0 is not a pgwarp metapage");
    }
    if (meta.magic != meta_magic) report_corruption(index, metapage_block, "the metapage has a wrong magic number");
    if (!content_has_crc(page)) report_corruption(index, metapage_block, "the metapage's checksum does not match");
    if (meta.format_version != meta_format_version) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("index \"%s\" has storage format %u, this pgwarp reads format %u",
                               RelationGetRelationName(index), meta.format_version, meta_format_version),
                        errhint("REINDEX it, or install the pgwarp release that wrote it.")));
    }
    if (page_content_bytes(page) != sizeof(MetaPage) || page_trailer(page)->segment_id != meta.generation) {
        report_corruption(index, metapage_block, "the metapage has a wrong length or generation");
    }
    if (meta.shape.dimensions == 0 || meta.shape.dimensions > max_dimensions) {
        report_corruption(index, metapage_block, "the metapage holds an impossible number of dimensions");
    }
}

static Buffer lock_metapage(Relation index, int lock_mode)
{
    return read_frequent_page(index, metapage_block, lock_mode);
}

MetaPage read_metapage(Relation index)
{
    const Buffer buffer = lock_metapage(index, BUFFER_LOCK_SHARE);
    Page page = BufferGetPage(buffer);
    MetaPage meta;
    memcpy(&meta, page_content(page), sizeof(meta));
    check_metapage(index, page, meta);
    UnlockReleaseBuffer(buffer);
    return meta;
}

void switch_metapage(Relation index, MetaPage* meta)
{
    const Buffer buffer = lock_metapage(index, BUFFER_LOCK_EXCLUSIVE);
    GenericXLogState* state = GenericXLogStart(index);
    Page page = GenericXLogRegisterBuffer(state, buffer, 0);
    meta->crc = metapage_crc(*meta);
    memcpy(page_content(page), meta, sizeof(*meta));
    page_trailer(page)->segment_id = meta->generation;
    GenericXLogFinish(state);
    UnlockReleaseBuffer(buffer);
}

uint64 bump_tombstone_version(Relation index)
{
    const Buffer buffer = lock_metapage(index, BUFFER_LOCK_EXCLUSIVE);
    GenericXLogState* state = GenericXLogStart(index);
    Page page = GenericXLogRegisterBuffer(state, buffer, 0);
    MetaPage meta;
    memcpy(&meta, page_content(page), sizeof(meta));
    check_metapage(index, page, meta);
    meta.tombstone_version++;
    meta.crc = metapage_crc(meta);
    memcpy(page_content(page), &meta, sizeof(meta));
    GenericXLogFinish(state);
    UnlockReleaseBuffer(buffer);
    return meta.tombstone_version;
}

}  // namespace pgwarp
