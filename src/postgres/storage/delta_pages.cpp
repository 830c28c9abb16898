// Checks the pages of delta logs, and finds pages by their page tables.
#include "postgres/storage/delta_pages.h"

#include <cstddef>
#include <initializer_list>

#include "postgres/storage/checksum.h"

namespace pgwarp
{

uint32 entry_crc(const DeltaEntry& entry)
{
    DeltaEntry copy = entry;
    copy.crc = 0;
    return bytes_crc(&copy, sizeof(copy));
}

void check_entry(Relation index, BlockNumber block, const DeltaEntry& entry)
{
    if (entry.crc != entry_crc(entry) || (entry.flags & ~(delta_dead | delta_null)) != 0) {
        report_corruption(index, block, "the checksum of a delta entry does not match");
    }
}

uint64 log_segment_id(const MetaPage& meta, uint32 log)
{
    return meta.log_identity + 1 + log;
}

uint32 head_crc(const LogHead& head)
{
    return bytes_crc(&head, offsetof(LogHead, crc));
}

uint32 samples_crc(const LogSamples& samples)
{
    return bytes_crc(&samples, offsetof(LogSamples, crc));
}

LogHead read_log_head(Relation index, const MetaPage& meta, uint32 log)
{
    const Buffer buffer = read_frequent_page(index, meta.logs[log].head, BUFFER_LOCK_SHARE);
    check_page(index, buffer, PageKind::log_head, log_segment_id(meta, log), 0);
    LogHead head;
    memcpy(&head, page_content(BufferGetPage(buffer)), sizeof(head));
    UnlockReleaseBuffer(buffer);
    check_log_head(index, meta, log, head);
    return head;
}

void check_log_head(Relation index, const MetaPage& meta, uint32 log, const LogHead& head)
{
    if (head.crc != head_crc(head)) {
        report_corruption(index, meta.logs[log].head, "the checksum of a delta log's head does not match");
    }
    const uint64 entry_room = (static_cast<uint64>(head.entries.tail_ordinal) + 1) * entries_per_page;
    const uint64 value_room = (static_cast<uint64>(head.values.tail_ordinal) + 1) * page_capacity;
    if (head.entry_end > entry_room || head.value_end > value_room || head.entry_end < meta.logs[log].start) {
        report_corruption(index, meta.logs[log].head, "the head of a delta log is impossible");
    }
}

void check_log_samples(Relation index, BlockNumber block, const LogSamples& samples)
{
    if (samples.crc != samples_crc(samples)) {
        report_corruption(index, block, "the checksum of a delta log's page table does not match");
    }
    for (const StreamSamples* stream : {&samples.entries, &samples.values}) {
        if (stream->stride == 0 || stream->count == 0 || stream->count > log_samples) {
            report_corruption(index, block, "the page table of a delta log is impossible");
        }
    }
}

void read_delta_ends(Relation index, const MetaPage& meta, uint64 ends[delta_log_count])
{
    for (uint32 log = 0; log < delta_log_count; ++log) ends[log] = read_log_head(index, meta, log).entry_end;
}

uint64 read_unplaced_end(Relation index, const MetaPage& meta)
{
    return keeps_unplaced(meta) ? read_log_head(index, meta, unplaced_log).entry_end : 0;
}

void note_page(StreamSamples* samples, uint32 ordinal, BlockNumber block)
{
    if (ordinal % samples->stride != 0) return;
    if (samples->count == log_samples) {
        for (uint32 i = 0; i < log_samples / 2; ++i) samples->blocks[i] = samples->blocks[2 * i];
        samples->count = log_samples / 2;
        samples->stride *= 2;
        if (ordinal % samples->stride != 0) return;
    }
    samples->blocks[samples->count++] = block;
}

StreamStart first_page(const LogStream& stream, const StreamStart& start)
{
    return stream.moved.block != metapage_block && stream.moved.ordinal == start.ordinal ? stream.moved : start;
}

void read_log_samples(Relation index, const MetaPage& meta, uint32 log, const LogHead& head, LogSamples* samples)
{
    const Buffer buffer =
        read_page(index, head.samples, PageKind::log_head, log_segment_id(meta, log), 1, BUFFER_LOCK_SHARE);
    memcpy(samples, page_content(BufferGetPage(buffer)), sizeof(*samples));
    UnlockReleaseBuffer(buffer);
    check_log_samples(index, head.samples, *samples);
}

// The nearest sample at or before the ordinal; sets *at to the sample's ordinal.
static BlockNumber nearest_sample(const LogSamples& samples, PageKind kind, uint32 ordinal, uint32* at)
{
    const StreamSamples& stream = kind == PageKind::log_entries ? samples.entries : samples.values;
    const uint32 sample = Min(ordinal / stream.stride, stream.count - 1);
    *at = sample * stream.stride;
    return stream.blocks[sample];
}

BlockNumber find_stream_page(Relation index, const MetaPage& meta, uint32 log, PageKind kind, const LogHead& head,
                             uint32 ordinal)
{
    const uint64 segment_id = log_segment_id(meta, log);
    const LogStream& stream = kind == PageKind::log_entries ? head.entries : head.values;
    const StreamStart start =
        first_page(stream, kind == PageKind::log_entries ? meta.logs[log].entries : meta.logs[log].values);
    if (ordinal == stream.tail_ordinal) return stream.tail;
    LogSamples samples;
    read_log_samples(index, meta, log, head, &samples);
    uint32 at = 0;
    BlockNumber block = nearest_sample(samples, kind, ordinal, &at);
    // Pages before the log's start may be in other use, so samples of these are skipped.
    if (at < start.ordinal) {
        at = start.ordinal;
        block = start.block;
    }
    for (; at < ordinal; ++at) {
        CHECK_FOR_INTERRUPTS();
        const Buffer buffer = try_read_page(index, block, kind, segment_id, at, BUFFER_LOCK_SHARE);
        if (!BufferIsValid(buffer)) return InvalidBlockNumber;
        block = page_trailer(BufferGetPage(buffer))->next;
        UnlockReleaseBuffer(buffer);
    }
    return at == ordinal ? block : InvalidBlockNumber;
}

ReadResult unexpected_log_page(Relation index, const MetaPage& meta, BlockNumber block)
{
    if (read_metapage(index).generation != meta.generation) return ReadResult::recycled;
    report_corruption(index, block, "the page is not the one expected there");
}

}  // namespace pgwarp
