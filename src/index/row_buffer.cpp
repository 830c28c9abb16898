// Rows of a build in reserved address space: growth never copies, sorting and compaction happen in place.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <numeric>

#include "index/index.h"

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

// Follow the cycles of the permutation with one row of scratch.
void RowBuffer::sort_by_tid()
{
    Tid* tids = state_->tid();
    float* vectors = state_->vector();
    const std::size_t size = state_->size;
    const std::size_t width = state_->dimensions;
    if (std::is_sorted(tids, tids + size)) return;
    std::vector<std::uint32_t> source(size);
    std::iota(source.begin(), source.end(), 0U);
    std::sort(source.begin(), source.end(),
              [tids](auto a, auto b) { return tids[a] == tids[b] ? a < b : tids[a] < tids[b]; });
    std::vector<float> scratch(width);
    for (std::size_t start = 0; start < size; ++start) {
        if (source[start] == start) continue;
        const Tid tid = tids[start];
        std::copy_n(vectors + start * width, width, scratch.begin());
        std::size_t at = start;
        while (source[at] != start) {
            const std::size_t from = source[at];
            tids[at] = tids[from];
            std::copy_n(vectors + from * width, width, vectors + at * width);
            source[at] = static_cast<std::uint32_t>(at);
            at = from;
        }
        tids[at] = tid;
        std::copy_n(scratch.begin(), width, vectors + at * width);
        source[at] = static_cast<std::uint32_t>(at);
    }
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
