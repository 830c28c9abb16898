// Rows of a build in reserved address space: growth never copies, sorting and compaction happen in place.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t most_rows = (std::size_t{1} << 32) - 2;  // row numbers have 32 bits
constexpr std::size_t most_bytes = std::size_t{1} << 44;
constexpr std::size_t fewest_bytes = std::size_t{1} << 30;
constexpr std::size_t smallest_step = std::size_t{64} << 20;

// Address space that becomes memory as it is used. Nothing of it counts against the system's commit limit before.
class Reservation
{
public:
    // As many bytes as there is room for, at most `bytes`.
    explicit Reservation(std::size_t bytes) : bytes_(bytes)
    {
        constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        while ((base_ = ::mmap(nullptr, bytes_, PROT_NONE, flags, -1, 0)) == MAP_FAILED) {
            if (bytes_ <= fewest_bytes) throw std::bad_alloc();
            bytes_ /= 2;
        }
        // Huge pages would be split by nobody here and save most of the page faults.
        ::madvise(base_, bytes_, MADV_HUGEPAGE);
    }
    ~Reservation() { ::munmap(base_, bytes_); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    void* base() const { return base_; }
    // Makes [0, wanted) usable. Throws std::bad_alloc when there is not so much.
    void grow(std::size_t wanted)
    {
        if (wanted <= usable_) return;
        const std::size_t step = std::max(smallest_step, usable_ / 8);
        std::size_t target = (wanted + step - 1) / step * step;
        if (target > bytes_) target = bytes_;
        if (wanted > target || ::mprotect(base_, target, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        usable_ = target;
    }
    // Give back whole pages of [from, to).
    void release(std::size_t from, std::size_t to)
    {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        from = (from + page - 1) / page * page;
        to = std::min(to, usable_) / page * page;
        if (from < to) ::madvise(static_cast<char*>(base_) + from, to - from, MADV_DONTNEED);
    }

private:
    void* base_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t usable_ = 0;
};

}  // namespace

struct RowBuffer::State {
    explicit State(std::size_t given)
        : dimensions(given),
          tids(most_rows * sizeof(Tid)),
          vectors(std::min(most_bytes / (given * sizeof(float)), most_rows) * given * sizeof(float))
    {
    }
    Tid* tid() const { return static_cast<Tid*>(tids.base()); }
    float* vector() const { return static_cast<float*>(vectors.base()); }
    // Makes room for so many rows and returns the first.
    std::size_t reserve(std::size_t count);

    std::size_t dimensions;
    std::mutex mutex;
    std::size_t size = 0;
    bool compacted = false;
    Reservation tids;
    Reservation vectors;
};

RowBuffer::RowBuffer(std::size_t dimensions) : state_(std::make_unique<State>(dimensions)) {}
RowBuffer::~RowBuffer() = default;

std::size_t RowBuffer::size() const
{
    return state_->size;
}
std::size_t RowBuffer::dimensions() const
{
    return state_->dimensions;
}
std::span<const Tid> RowBuffer::tids() const
{
    return {state_->tid(), state_->size};
}
std::span<float> RowBuffer::vectors()
{
    if (state_->compacted) return {};
    return {state_->vector(), state_->size * state_->dimensions};
}

std::size_t RowBuffer::State::reserve(std::size_t count)
{
    const std::lock_guard lock(mutex);
    if (size + count > most_rows) throw BadRequest("too many rows for one build");
    tids.grow((size + count) * sizeof(Tid));
    vectors.grow((size + count) * dimensions * sizeof(float));
    size += count;
    return size - count;
}

std::span<float> RowBuffer::append(std::span<const Tid> tids, std::span<const float> vectors)
{
    if (vectors.size() != tids.size() * state_->dimensions) throw BadRequest("rows and addresses differ in number");
    const std::size_t first = state_->reserve(tids.size());
    float* const to = state_->vector() + first * state_->dimensions;
    if (tids.empty()) return {to, 0};
    std::memcpy(state_->tid() + first, tids.data(), tids.size_bytes());
    std::memcpy(to, vectors.data(), vectors.size_bytes());
    return {to, vectors.size()};
}

namespace
{

struct Place {
    std::uint64_t tid;
    std::uint32_t source;
};

// Where the ascending runs begin, and the end: a parallel scan leaves as many as it had batches.
std::vector<std::size_t> ascending_runs(const std::vector<Place>& places)
{
    std::vector<std::size_t> begins = {0};
    for (std::size_t i = 1; i < places.size(); ++i) {
        if (places[i].tid < places[i - 1].tid) begins.push_back(i);
    }
    begins.push_back(places.size());
    return begins;
}

// Which row comes where in order of tids; equal ones keep their order. Runs are merged in pairs.
std::vector<std::uint32_t> order_of(std::span<const Tid> tids, ThreadPool& pool)
{
    std::vector<Place> places(tids.size());
    for (std::size_t i = 0; i < tids.size(); ++i) {
        places[i] = {std::uint64_t{tids[i].block} << 16 | tids[i].offset, static_cast<std::uint32_t>(i)};
    }
    std::vector<Place> merged(tids.size());
    for (std::vector<std::size_t> begins = ascending_runs(places); begins.size() > 2;) {
        const std::size_t runs = begins.size() - 1;
        pool.parallel_for((runs + 1) / 2, 1, [&](std::size_t first, std::size_t last) {
            for (std::size_t pair = first; pair < last; ++pair) {
                const auto at = [&](std::size_t run) {
                    return static_cast<std::ptrdiff_t>(begins[std::min(run, runs)]);
                };
                const auto from = places.begin();
                std::merge(from + at(2 * pair), from + at(2 * pair + 1), from + at(2 * pair + 1),
                           from + at(2 * pair + 2), merged.begin() + at(2 * pair),
                           [](const Place& a, const Place& b) { return a.tid < b.tid; });
            }
        });
        places.swap(merged);
        std::vector<std::size_t> next;
        for (std::size_t run = 0; run < runs; run += 2) next.push_back(begins[run]);
        next.push_back(begins[runs]);
        begins = std::move(next);
    }
    std::vector<std::uint32_t> order(tids.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = places[i].source;
    return order;
}

// Rows and their tids, to be put in order by following the cycles of the permutation.
class Permutation
{
public:
    Permutation(Tid* tids, float* vectors, std::size_t width, std::vector<std::uint32_t> source)
        : tids_(tids), vectors_(vectors), width_(width), source_(std::move(source))
    {
    }

    // Cuts the cycles at every `step`-th place: what lies there is kept aside, so that each piece between two cuts can
    // be followed by a thread of its own. Then, one after the other, what had no cut.
    void apply(ThreadPool& pool)
    {
        cuts_ = (source_.size() + step - 1) / step;
        kept_tids_.resize(cuts_);
        kept_.resize(cuts_ * width_);
        for (std::size_t cut = 0; cut < cuts_; ++cut) keep(cut, cut * step);
        pool.parallel_for(cuts_, 1, [&](std::size_t first, std::size_t last) {
            for (std::size_t cut = first; cut < last; ++cut) follow(cut * step);
        });
        kept_tids_.resize(1);
        kept_.resize(width_);
        for (std::size_t start = 0; start < source_.size(); ++start) {
            if (source_[start] == start) continue;
            keep(0, start);
            start_ = start;
            follow(start);
        }
    }

private:
    static constexpr std::size_t step = 1024;
    static constexpr std::size_t none = ~std::size_t{0};

    void keep(std::size_t slot, std::size_t at)
    {
        kept_tids_[slot] = tids_[at];
        std::copy_n(vectors_ + at * width_, width_, kept_.begin() + static_cast<std::ptrdiff_t>(slot * width_));
    }
    void put(std::size_t at, Tid tid, const float* row)
    {
        tids_[at] = tid;
        std::copy_n(row, width_, vectors_ + at * width_);
    }
    // The slot that keeps the row of this place; none when it lies there still.
    std::size_t slot_of(std::size_t place) const
    {
        if (start_ != none) return place == start_ ? 0 : none;
        return place % step == 0 ? place / step : none;
    }
    void follow(std::size_t at)
    {
        if (source_[at] == at) return;
        while (true) {
            const std::size_t from = source_[at];
            source_[at] = static_cast<std::uint32_t>(at);
            const std::size_t slot = slot_of(from);
            if (slot != none) return put(at, kept_tids_[slot], kept_.data() + slot * width_);
            put(at, tids_[from], vectors_ + from * width_);
            at = from;
        }
    }

    Tid* tids_;
    float* vectors_;
    std::size_t width_;
    std::vector<std::uint32_t> source_;  // of each place; the place itself once its row lies there
    std::size_t cuts_ = 0;
    std::size_t start_ = none;  // of the cycle without cuts that is followed
    std::vector<Tid> kept_tids_;
    std::vector<float> kept_;
};

}  // namespace

void RowBuffer::sort_by_tid(ThreadPool* pool)
{
    if (std::is_sorted(state_->tid(), state_->tid() + state_->size)) return;
    ThreadPool alone(1);
    ThreadPool& threads = pool != nullptr ? *pool : alone;
    Permutation(state_->tid(), state_->vector(), state_->dimensions, order_of(tids(), threads)).apply(threads);
}

std::span<const std::uint16_t> RowBuffer::compact_to_half(
    const std::function<void(const float* row, std::uint16_t* out)>& encode)
{
    const std::size_t width = state_->dimensions;
    auto* halves = static_cast<std::uint16_t*>(state_->vectors.base());
    std::vector<std::uint16_t> encoded(width);
    // Row i's halves end at or before its floats begin, but for row 0: hence the detour over `encoded`.
    for (std::size_t i = 0; i < state_->size; ++i) {
        encode(state_->vector() + i * width, encoded.data());
        std::memcpy(halves + i * width, encoded.data(), width * sizeof(std::uint16_t));
    }
    return replace_by_half();
}

std::span<std::uint16_t> RowBuffer::replace_by_half()
{
    const std::size_t count = state_->size * state_->dimensions;
    state_->vectors.release(count * sizeof(std::uint16_t), count * sizeof(float));
    state_->compacted = true;
    return {static_cast<std::uint16_t*>(state_->vectors.base()), count};
}

}  // namespace pgwarp
