// A resident index: loading, additions, the cost of delta rows, parts, and statistics.
#include "engine/mirror/mirror.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "engine/mirror/index_arrays.h"
#include "engine/mirror/row_checks.h"

namespace pgwarp
{

namespace
{

// The aimed time of a wide dispatch: other searches wait for the device that long.
constexpr std::uint64_t batch_patience_ns = 20000000;
constexpr std::size_t narrowest_wide_batch = 64;
constexpr std::size_t first_wide_batch = 256;
constexpr std::size_t widest_wide_batch = 4096;

// A guess before any search is counted: float operations of the CPU, of the weight of a short search.
constexpr double guessed_ns = 1e6;
constexpr double guessed_cost = 2e7;
constexpr double counted_lately_ns = 200e6;

// Delta rows must have cost measured_ns before their cost is judged, and must be fewest_part_rows for a part.
constexpr std::uint64_t measured_ns = 500000;
constexpr std::uint64_t remembered_ns = 20000000;  // of searches in the index; half of the times are forgotten then
constexpr std::uint64_t most_parts = 4;            // times the search in the index, at which their time is cut
constexpr std::uint64_t fewest_part_rows = 128;
constexpr auto part_pause = std::chrono::seconds(30);  // after a part could not be made
constexpr int part_patience = 4;  // times the making of a part, after it: parts take a fifth of a thread

// The class of a dispatch by its number of queries: powers of two.
std::size_t class_of(std::size_t queries)
{
    return std::min<std::size_t>(std::bit_width(queries), 15);
}

PartView view_part(DeltaPartPtr part, const Tombstones& dead)
{
    std::vector<std::uint64_t> bits = part->dead_rows(dead.log_entries);
    if (bits.empty()) return {std::move(part), nullptr};
    return {std::move(part), std::make_shared<const std::vector<std::uint64_t>>(std::move(bits)), new_bitmap_version()};
}

// The view before, where the dead rows of the part have not changed.
PartView view_again(const PartView& before, const Tombstones& dead)
{
    PartView now = view_part(before.part, dead);
    const bool same =
        (now.dead == nullptr) == (before.dead == nullptr) && (now.dead == nullptr || *now.dead == *before.dead);
    return same ? before : now;
}

// Adds bits. True when any of them is new.
bool add_bits(std::vector<std::uint64_t>& have, std::span<const std::uint64_t> more)
{
    std::uint64_t added = 0;
    for (std::size_t i = 0; i < more.size(); ++i) {
        added |= more[i] & ~have[i];
        have[i] |= more[i];
    }
    return added != 0;
}

std::uint64_t count_bits(const std::vector<std::uint64_t>& words)
{
    std::uint64_t bits = 0;
    for (std::uint64_t word : words) bits += std::popcount(word);
    return bits;
}

// The union of sorted positions.
std::vector<std::uint64_t> merge_positions(const std::vector<std::uint64_t>& have, std::vector<std::uint64_t> more)
{
    std::sort(more.begin(), more.end());
    std::vector<std::uint64_t> all;
    all.reserve(have.size() + more.size());
    std::merge(have.begin(), have.end(), more.begin(), more.end(), std::back_inserter(all));
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

}  // namespace

std::uint64_t Tombstones::bytes() const
{
    std::uint64_t values = rows.size();
    for (const auto& entries : log_entries) values += entries.size();
    return values * sizeof(std::uint64_t);
}

SearchStatus MirrorSnapshot::status_for(std::span<const std::uint64_t> delta_end,
                                        std::uint64_t least_tombstone_version) const
{
    for (std::size_t i = 0; i < delta_log_count; ++i) {
        if (logs[i].end < delta_end[i]) return SearchStatus::need_delta;
    }
    return tombstone_version < least_tombstone_version ? SearchStatus::need_tombstones : SearchStatus::answered;
}

std::uint64_t MirrorSnapshot::plain_rows() const
{
    std::uint64_t rows = delta_rows();
    for (const PartView& view : parts) rows -= view.part->rows.size();
    return rows;
}

std::uint64_t MirrorSnapshot::delta_rows() const
{
    std::uint64_t rows = 0;
    for (const DeltaView& log : logs) rows += log.rows();
    return rows;
}

Mirror::Mirror(const MirrorKey& key, const IndexShape& shape, const ParameterList& options, std::uint64_t rows,
               std::vector<ArrayShape> arrays, const MethodFactory& method, bool on_cuda)
    : key_(key),
      shape_(shape),
      rows_(rows),
      arrays_(std::move(arrays)),
      on_cuda_(on_cuda),
      row_values_(count_row_values(shape, rows, arrays_)),
      written_(arrays_.size()),
      copied_(arrays_.size()),
      recipe_(shape, options, rows, arrays_, method),
      wide_batch_(first_wide_batch),
      counted_ns_(guessed_ns),
      counted_cost_(guessed_cost)
{
    if (rows > std::numeric_limits<std::uint32_t>::max()) throw BadRequest("too many rows for one segment");
    if (rows > 0 || !arrays_.empty()) {
        check_tid_arrays(arrays_, rows);
        check_row_arrays(arrays_, rows, shape.attribute_count);
    }
    searcher_ = method.make_searcher(shape, options, method_arrays(arrays_));
    blocks_.resize(rows);
    offsets_.resize(rows);
    attributes_.resize(rows * shape.attribute_count);
    filter_ = std::make_unique<FilterIndex>(attributes_, shape.attribute_count, rows);
    tid_order_ = std::make_unique<TidOrder>(blocks_, offsets_);
    auto first = std::make_shared<MirrorSnapshot>();
    first->dead = std::make_shared<Tombstones>();
    snapshot_ = std::move(first);
    touch();
}

void Mirror::claim(std::uint32_t array, std::uint64_t offset, std::uint64_t length)
{
    std::lock_guard lock(mutex_);
    // Searchers lay the later arrays out by the earlier ones, and several connections may be sending.
    while (first_open_ < array && copied_[first_open_] == arrays_[first_open_].bytes()) ++first_open_;
    if (first_open_ < array) throw BadRequest("arrays out of order");
    std::vector<Interval>& intervals = written_[array];
    const auto after = std::lower_bound(intervals.begin(), intervals.end(), offset,
                                        [](const Interval& interval, std::uint64_t at) { return interval.end <= at; });
    if (after != intervals.end() && after->begin < offset + length) throw BadRequest("part of an array was sent twice");
    const auto at = intervals.insert(after, {offset, offset + length});
    // Adjacent intervals are joined, so that a load in order keeps one interval.
    if (const auto next = at + 1; next != intervals.end() && next->begin == at->end) {
        at->end = next->end;
        intervals.erase(next);
    }
    if (at != intervals.begin() && (at - 1)->end == at->begin) {
        (at - 1)->end = at->end;
        intervals.erase(at);
    }
}

void Mirror::write(std::uint32_t array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array >= arrays_.size()) throw BadRequest("chunk of an unknown array");
    const ArrayShape& shape = arrays_[array];
    if (offset > shape.bytes() || bytes.size() > shape.bytes() - offset)
        throw BadRequest("chunk past the end of its array");
    if (bytes.empty()) return;
    claim(array, offset, bytes.size());
    if (is_named(shape, array_tid_block)) {
        std::memcpy(reinterpret_cast<std::byte*>(blocks_.data()) + offset, bytes.data(), bytes.size());
    } else if (is_named(shape, array_tid_offset)) {
        std::memcpy(reinterpret_cast<std::byte*>(offsets_.data()) + offset, bytes.data(), bytes.size());
    } else if (is_named(shape, array_attributes)) {
        std::memcpy(reinterpret_cast<std::byte*>(attributes_.data()) + offset, bytes.data(), bytes.size());
    } else {
        if (recipe_.takes(shape)) std::memcpy(recipe_.shared_bytes.data() + offset, bytes.data(), bytes.size());
        searcher_->write(shape.name, offset, bytes);
    }
    std::lock_guard lock(mutex_);
    copied_[array] += bytes.size();
}

void Mirror::check_complete() const
{
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        // No byte is sent twice, so their number tells.
        if (copied_[i] != arrays_[i].bytes()) {
            throw BadRequest("array \"" + std::string(arrays_[i].name) + "\" was not sent whole");
        }
    }
}

void Mirror::finish_load(ThreadPool& pool)
{
    if (finished_) return;
    searcher_->finish_load(pool);
    finished_ = true;
}

void Mirror::add_delta(std::uint32_t log, std::uint64_t first, std::span<const Tid> tids, const RowView& rows)
{
    if (rows.count != tids.size()) throw BadRequest("delta rows and addresses differ in number");
    check_rows(shape_, rows);
    std::lock_guard extending(extend_mutex_);
    const auto current = snapshot();
    auto next = std::make_shared<MirrorSnapshot>(*current);
    next->logs[log] = extend_delta(current->logs[log], shape_, first, tids, rows);
    std::lock_guard lock(mutex_);
    snapshot_ = std::move(next);
}

void Mirror::add_tombstones(std::uint64_t version, const Tombstones& more)
{
    const std::uint64_t words = (rows_ + 63) / 64;
    if (more.rows.size() > words) throw BadRequest("tombstones past the last row");
    std::lock_guard extending(extend_mutex_);
    const auto current = snapshot();
    // Dead rows never come back within a generation: known tombstones stay, so that a late or partial message can't
    // undo them.
    auto dead = std::make_shared<Tombstones>(*current->dead);
    if (!more.rows.empty()) dead->rows.resize(words);
    if (add_bits(dead->rows, more.rows)) dead->rows_version = new_bitmap_version();
    if (!dead->rows.empty() && rows_ % 64 != 0) dead->rows.back() &= (std::uint64_t{1} << (rows_ % 64)) - 1;
    dead->dead_rows = count_bits(dead->rows);
    if (dead->dead_rows == 0) dead->rows.clear();  // searches skip an empty bitmap
    for (std::size_t i = 0; i < delta_log_count; ++i) {
        dead->log_entries[i] = merge_positions(dead->log_entries[i], more.log_entries[i]);
    }
    auto next = std::make_shared<MirrorSnapshot>(*current);
    next->dead = std::move(dead);
    for (PartView& view : next->parts) view = view_again(view, *next->dead);
    next->tombstone_version = std::max(current->tombstone_version, version);
    std::lock_guard lock(mutex_);
    snapshot_ = std::move(next);
}

void Mirror::count_delta(std::uint64_t rows_nanoseconds, std::uint64_t parts_nanoseconds,
                         std::uint64_t plain_nanoseconds)
{
    const auto add = [](std::atomic<std::uint64_t>& sum, std::uint64_t more) {
        return sum.fetch_add(more, std::memory_order_relaxed) + more;
    };
    const std::uint64_t rows_ns = add(rows_ns_, rows_nanoseconds);
    // The time of a descheduled thread says nothing about parts.
    add(parts_ns_, std::min(parts_nanoseconds, most_parts * rows_nanoseconds));
    add(plain_ns_, plain_nanoseconds);
    if (rows_ns <= remembered_ns) return;
    // Older times count for less. Concurrent counts that are lost here are few.
    for (std::atomic<std::uint64_t>* sum : {&parts_ns_, &plain_ns_, &hidden_ns_})
        sum->store(sum->load(std::memory_order_relaxed) * (remembered_ns / 2) / rows_ns, std::memory_order_relaxed);
    rows_ns_.store(remembered_ns / 2, std::memory_order_relaxed);
}

void Mirror::count_with_few(std::size_t queries, std::uint64_t nanoseconds)
{
    std::atomic<std::uint64_t>& kept = with_few_ns_[class_of(queries)];
    const std::uint64_t before = kept.load(std::memory_order_relaxed);
    // The time of a descheduled thread says nothing about the device.
    const std::uint64_t now = before == 0 ? nanoseconds : (15 * before + std::min(nanoseconds, 2 * before)) / 16;
    kept.store(std::max<std::uint64_t>(now, 1), std::memory_order_relaxed);
}

void Mirror::count_overlapped_delta(const OverlappedTimes& times)
{
    const std::uint64_t delta = times.parts + times.plain;
    const std::uint64_t with_few = with_few_ns_[class_of(times.queries)].load(std::memory_order_relaxed);
    const std::uint64_t cost = std::min(delta, times.all - std::min(times.all, with_few));
    const std::uint64_t parts = delta > 0 ? cost * times.parts / delta : 0;
    hidden_ns_.fetch_add(times.plain - std::min(times.plain, cost - parts), std::memory_order_relaxed);
    count_delta(times.all - cost, parts, cost - parts);
}

std::uint64_t Mirror::bearable_ns() const
{
    return rows_ns_.load(std::memory_order_relaxed) / 4;
}

double Mirror::delta_cost() const
{
    const std::uint64_t rows_ns = rows_ns_.load(std::memory_order_relaxed);
    if (rows_ns < measured_ns) return -1;
    std::uint64_t plain_ns = plain_ns_.load(std::memory_order_relaxed);
    // Between two parts this time grows from 0 to bearable_ns(): half of that on average.
    if (recipe_.possible() && !part_failed_.load()) plain_ns = std::min(plain_ns, bearable_ns() / 2);
    return static_cast<double>(parts_ns_.load(std::memory_order_relaxed) + plain_ns) / static_cast<double>(rows_ns);
}

void Mirror::wait_with_parts(Clock::duration duration)
{
    no_part_before_.store((Clock::now() + duration).time_since_epoch().count(), std::memory_order_relaxed);
}

bool Mirror::wants_part()
{
    // Time hidden behind the work of a device counts as well: it must stay hidden.
    const std::uint64_t plain_ns =
        plain_ns_.load(std::memory_order_relaxed) + hidden_ns_.load(std::memory_order_relaxed);
    if (!recipe_.possible() || plain_ns < measured_ns || plain_ns <= bearable_ns()) return false;
    if (snapshot()->plain_rows() < fewest_part_rows) return false;
    if (Clock::now().time_since_epoch().count() < no_part_before_.load(std::memory_order_relaxed)) return false;
    return !part_asked_.exchange(true);
}

void Mirror::add_part(ThreadPool& pool, const std::function<void(std::uint64_t)>& make_room)
{
    const std::lock_guard making(part_mutex_);
    const auto started = Clock::now();
    try {
        const auto before = snapshot();
        std::vector<DeltaPartPtr> parts;
        for (const PartView& view : before->parts) parts.push_back(view.part);
        const PartPlan plan = plan_part(recipe_, before->logs, parts);
        if (plan.rows > 0) {
            make_room(part_bytes(recipe_, before->logs, plan));
            DeltaPartPtr part = make_part(recipe_, before->logs, plan, parts, pool);
            std::lock_guard extending(extend_mutex_);
            auto next = std::make_shared<MirrorSnapshot>(*snapshot());
            next->parts.resize(plan.kept);
            next->parts.push_back(view_part(std::move(part), *next->dead));
            std::lock_guard lock(mutex_);
            snapshot_ = std::move(next);
        }
    } catch (...) {
        wait_with_parts(part_pause);
        part_failed_.store(true);
        part_asked_.store(false);
        throw;
    }
    wait_with_parts(part_patience * (Clock::now() - started));
    rows_ns_.store(0, std::memory_order_relaxed);
    parts_ns_.store(0, std::memory_order_relaxed);
    plain_ns_.store(0, std::memory_order_relaxed);
    hidden_ns_.store(0, std::memory_order_relaxed);
    part_failed_.store(false);
    part_asked_.store(false);
}

std::shared_ptr<const MirrorSnapshot> Mirror::snapshot() const
{
    std::lock_guard lock(mutex_);
    return snapshot_;
}

std::uint64_t Mirror::memory_bytes() const
{
    const auto current = snapshot();
    std::uint64_t bytes = searcher_->memory_bytes() + rows_ * (sizeof(std::uint32_t) + sizeof(std::uint16_t)) +
                          attributes_.size() * sizeof(std::uint64_t) + filter_->memory_bytes() +
                          tid_order_->memory_bytes();
    for (const DeltaView& log : current->logs) bytes += log.bytes();
    for (const PartView& view : current->parts) bytes += view.part->memory_bytes();
    return bytes + recipe_.shared_bytes.size() + current->dead->bytes();
}

std::uint64_t Mirror::device_bytes() const
{
    const auto current = snapshot();  // keeps the parts alive
    std::uint64_t bytes = searcher_->residence().device_bytes;
    for (const PartView& view : current->parts) bytes += view.part->searcher->residence().device_bytes;
    return bytes;
}

std::uint64_t Mirror::stored_bytes() const
{
    std::uint64_t bytes = 0;
    for (const ArrayShape& array : arrays_) bytes += array.bytes();
    return bytes;
}

void Mirror::count_batch(std::uint64_t queries, std::uint64_t nanoseconds)
{
    searches_.fetch_add(queries, std::memory_order_relaxed);
    batches_.fetch_add(1, std::memory_order_relaxed);
    engine_ns_.fetch_add(nanoseconds, std::memory_order_relaxed);
    std::uint64_t widest = widest_batch_.load(std::memory_order_relaxed);
    while (widest < queries && !widest_batch_.compare_exchange_weak(widest, queries, std::memory_order_relaxed)) {
    }
    const std::size_t width = wide_batch();
    if (nanoseconds > 2 * batch_patience_ns && queries <= width) {
        wide_batch_.store(std::clamp<std::size_t>(queries / 2, narrowest_wide_batch, width), std::memory_order_relaxed);
    } else if (nanoseconds < batch_patience_ns / 2 && queries > width / 2) {
        wide_batch_.store(std::min(width * 2, widest_wide_batch), std::memory_order_relaxed);
    }
}

void Mirror::count_cost(double cost, double nanoseconds)
{
    if (cost <= 0) return;
    double ns = counted_ns_.load(std::memory_order_relaxed) + nanoseconds;
    double sum = counted_cost_.load(std::memory_order_relaxed) + cost;
    // Older times count for less. Concurrent counts that are lost here are few.
    if (ns > counted_lately_ns) {
        sum *= counted_lately_ns / 2 / ns;
        ns = counted_lately_ns / 2;
    }
    counted_ns_.store(ns, std::memory_order_relaxed);
    counted_cost_.store(sum, std::memory_order_relaxed);
}

void Mirror::count_answer(std::uint64_t queries, std::uint64_t queue_nanoseconds, std::uint64_t nanoseconds)
{
    queue_ns_.fetch_add(queries * queue_nanoseconds, std::memory_order_relaxed);
    answer_ns_.fetch_add(queries * nanoseconds, std::memory_order_relaxed);
}

MirrorStatus Mirror::status() const
{
    const auto current = snapshot();
    MirrorStatus status{};
    status.key = key_;
    status.method = shape_.method;
    const Residence residence = searcher_->residence();
    status.on_cuda = on_cuda_ ? 1 : 0;
    status.gpu = static_cast<std::int8_t>(residence.gpu);
    status.split = residence.split ? 1 : 0;
    status.device_bytes = device_bytes();
    status.rows = rows_;
    status.delta_rows = current->delta_rows();
    status.part_rows = current->delta_rows() - current->plain_rows();
    status.delta_cost = delta_cost();
    status.dead_rows = current->dead->dead_rows;
    for (const auto& entries : current->dead->log_entries) status.dead_rows += entries.size();
    status.bytes = memory_bytes();
    status.searches = searches_.load(std::memory_order_relaxed);
    status.batches = batches_.load(std::memory_order_relaxed);
    status.widest_batch = widest_batch_.load(std::memory_order_relaxed);
    status.queue_ns = queue_ns_.load(std::memory_order_relaxed);
    status.engine_ns = engine_ns_.load(std::memory_order_relaxed);
    status.answer_ns = answer_ns_.load(std::memory_order_relaxed);
    const auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last_used());
    status.idle_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(idle.count(), 0));
    return status;
}

}  // namespace pgwarp
