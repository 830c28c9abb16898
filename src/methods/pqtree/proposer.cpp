// The proposing stage on the CPU: descent, bins, line codes.
#include "methods/pqtree/proposer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "methods/pqtree/bin_lists.h"
#include "methods/pqtree/bin_order.h"
#include "methods/pqtree/line_kernels.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t fewest_bins = 32;
constexpr std::size_t fewest_ranks = 128;  // leaves of a part that are sorted at first
constexpr float spare_bins = 1.2F;         // more than the last search needed
constexpr std::size_t most_bins_per_row = 2;  // with more, comparing all rows takes less time
constexpr std::size_t most_bins = std::size_t{1} << 40;
constexpr std::size_t scored_at_a_time = 4096;  // candidates
constexpr std::size_t buckets = 256;            // of scores, where bins are cut

// The rows of a bin that a search passes.
struct VisitedBin {
    float score;
    std::uint32_t begin;
    std::uint32_t end;
    std::uint32_t live;
    std::uint64_t slot;
};

// The memory of a search, of each thread.
struct Workspace {
    std::vector<float> centroid_scores;  // [line parts][padded k1]
    std::vector<float> part_scores;      // [padded k1], then of leaves
    std::vector<std::uint32_t> order;
    std::vector<std::vector<std::uint64_t>> leaves;  // compared ones of each part, as ordered keys
    RankedParts ranked;                              // the nearest of them
    std::size_t ranks = 0;
    std::vector<ScoredBin> bins;
    std::vector<VisitedBin> visited;
    std::vector<std::uint32_t> positions;
    std::vector<float> scores;
    CodeTerms terms;
};

// Scores beyond float's range are ordered after all others, so that sums of all parts and their differences are finite.
float orderable(float score)
{
    constexpr float largest = std::numeric_limits<float>::max() / (2 * most_tree_parts);
    return score < largest ? std::max(score, -largest) : largest;
}

// Packs `count` rows of `level` from `first` on, in the columns [begin, begin + width): [blocks][width][16].
void pack(const std::vector<float>& level, std::size_t dimensions, std::size_t first, std::size_t count,
          std::size_t begin, std::size_t width, float* out)
{
    constexpr std::size_t block = PackedLines::block;
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t d = 0; d < width; ++d)
            out[i / block * block * width + d * block + i % block] = level[(first + i) * dimensions + begin + d];
    }
}

class CpuProposer : public TreeProposer
{
public:
    CpuProposer(Metric metric, const TreeOptions& options, const ProductTree& tree, const LineTable& lines,
                std::span<const std::uint8_t> codes, ThreadPool& pool);

    void propose(std::span<const float> queries, const SearchPlan& plan, RowBitmap dead,
                 std::vector<std::vector<Candidate>>& proposed, ThreadPool& pool,
                 const CancelToken* cancel) const override;
    std::uint64_t memory_bytes() const override
    {
        return lists_.memory_bytes() + codes_.size() +
               (biases_.size() + level1_.size() + level2_.size()) * sizeof(float) +
               5 * sizeof(float) * most_lines * arrays_.size();
    }
    std::uint64_t bins_visited() const override { return bins_visited_.load(std::memory_order_relaxed); }

private:
    void pack_tree(const ProductTree& tree);
    void pack_codes(const TreeOptions& options, const LineTable& lines, std::span<const float> lengths,
                    std::span<const std::uint8_t> codes, ThreadPool& pool);

    void score_centroids(const float* query, Workspace& space) const;
    void descend(const float* query, std::size_t width, Workspace& space) const;
    void descend_part(const float* query, std::size_t part, std::size_t width, Workspace& space) const;
    void sort_leaves(std::size_t ranks, Workspace& space) const;
    void order_bins(std::size_t wanted, std::size_t most, Workspace& space) const;
    std::size_t visit_bins(RowBitmap dead, Workspace& space) const;
    bool take_bins(std::size_t candidates, RowBitmap dead, Workspace& space) const;
    void cut_bins(std::size_t candidates, Workspace& space) const;
    void list_positions(RowBitmap dead, Workspace& space) const;
    void list_all(RowBitmap dead, Workspace& space) const;
    std::vector<Candidate> best_of(std::size_t wanted, Workspace& space, const CancelToken* cancel) const;
    std::vector<Candidate> propose_one(const float* query, const SearchPlan& plan, RowBitmap dead,
                                       const CancelToken* cancel) const;

    bool squared_;
    LineShape shape_;
    std::size_t padded_k1_;
    std::size_t padded_k2_;
    std::size_t padded_parts_;
    std::vector<float> level1_;       // [line parts][padded k1 / 16][width][16]
    std::vector<float> level2_;       // [parts][k1][padded k2 / 16][width][16]
    std::vector<LineArrays> arrays_;  // [line parts]
    BinLists lists_;
    BulkVector<std::uint8_t> codes_;  // [position][2][padded line parts]
    BulkVector<float> biases_;        // [position]
    mutable std::atomic<float> bins_per_row_{0.5F};
    mutable std::atomic<std::uint64_t> bins_visited_{0};
};

CpuProposer::CpuProposer(Metric metric, const TreeOptions& options, const ProductTree& tree, const LineTable& lines,
                         std::span<const std::uint8_t> codes, ThreadPool& pool)
    : squared_(tree_metric(metric) == Metric::l2),
      shape_(lines.shape),
      padded_k1_(blocks_of(tree.shape.k1) * PackedLines::block),
      padded_k2_(blocks_of(tree.shape.k2) * PackedLines::block),
      padded_parts_(padded_line_parts(lines.shape.line_parts)),
      lists_(tree.shape, codes, options.code_bytes(), pool)
{
    pack_tree(tree);
    const std::vector<float> lengths = line_lengths(tree, lines, tree_metric(metric));
    for (std::size_t number = 0; number < shape_.line_parts; ++number) {
        LineArrays part(shape_.lines());
        for (std::size_t i = 0; i < shape_.lines(); ++i) {
            const std::size_t line = number * shape_.lines() + i;
            part.from[i] = static_cast<std::int32_t>(lines.end(line, 0));
            part.to[i] = static_cast<std::int32_t>(lines.end(line, 1));
            part.first[i] = lines.places[2 * line];
            part.step[i] = lines.places[2 * line + 1];
            part.length[i] = lengths[line];
        }
        arrays_.push_back(std::move(part));
    }
    pack_codes(options, lines, lengths, codes, pool);
}

void CpuProposer::pack_tree(const ProductTree& tree)
{
    const TreeShape& shape = tree.shape;
    level1_.assign(padded_k1_ * shape.dimensions, 0.0F);
    for (std::size_t number = 0; number < shape_.line_parts; ++number) {
        pack(tree.level1, shape.dimensions, 0, shape.k1, shape_.begin(number), shape_.width(number),
             level1_.data() + shape_.begin(number) * padded_k1_);
    }
    level2_.assign(shape.k1 * padded_k2_ * shape.dimensions, 0.0F);
    for (std::size_t part = 0; part < shape.parts; ++part) {
        float* out = level2_.data() + shape.begin(part) * shape.k1 * padded_k2_;
        for (std::size_t c = 0; c < shape.k1; ++c, out += shape.width(part) * padded_k2_)
            pack(tree.level2, shape.dimensions, c * shape.k2, shape.k2, shape.begin(part), shape.width(part), out);
    }
}

void CpuProposer::pack_codes(const TreeOptions& options, const LineTable& lines, std::span<const float> lengths,
                             std::span<const std::uint8_t> codes, ThreadPool& pool)
{
    codes_.resize(lists_.rows() * 2 * padded_parts_);
    biases_.resize(lists_.rows());
    pool.parallel_for(lists_.rows(), 4096, [&](std::size_t first, std::size_t last) {
        for (std::size_t position = first; position < last; ++position) {
            const std::uint8_t* code =
                codes.data() + std::size_t{lists_.row_at(position)} * options.code_bytes() + options.line_offset();
            std::uint8_t* out = codes_.data() + position * 2 * padded_parts_;
            for (std::size_t i = 0; i < shape_.line_parts; ++i) {
                if (code[i] >= shape_.lines()) throw BadRequest("a row is on a line that does not exist");
            }
            std::memset(out, 0, 2 * padded_parts_);
            std::memcpy(out, code, shape_.line_parts);
            std::memcpy(out + padded_parts_, code + shape_.line_parts, shape_.line_parts);
            biases_[position] = line_bias(lines, lengths, code);
        }
    });
}

// Scores the centroids of the first level in each line part.
void CpuProposer::score_centroids(const float* query, Workspace& space) const
{
    space.centroid_scores.resize(shape_.line_parts * padded_k1_);
    for (std::size_t number = 0; number < shape_.line_parts; ++number) {
        score_packed(squared_, level1_.data() + shape_.begin(number) * padded_k1_, padded_k1_ / PackedLines::block,
                     shape_.width(number), query + shape_.begin(number),
                     space.centroid_scores.data() + number * padded_k1_);
    }
}

void CpuProposer::descend(const float* query, std::size_t width, Workspace& space) const
{
    space.leaves.resize(shape_.tree.parts);
    for (std::size_t part = 0; part < shape_.tree.parts; ++part) descend_part(query, part, width, space);
}

// The scores of a part's centroids are sums over its line parts.
void CpuProposer::descend_part(const float* query, std::size_t part, std::size_t width, Workspace& space) const
{
    const TreeShape& tree = shape_.tree;
    space.part_scores.assign(padded_k1_, 0.0F);
    for (std::size_t piece = 0; piece < shape_.pieces(); ++piece) {
        const float* scores = space.centroid_scores.data() + (part * shape_.pieces() + piece) * padded_k1_;
        for (std::size_t c = 0; c < tree.k1; ++c) space.part_scores[c] += scores[c];
    }
    for (float& score : space.part_scores) score = orderable(score);
    space.order.resize(tree.k1);
    for (std::size_t c = 0; c < tree.k1; ++c) space.order[c] = static_cast<std::uint32_t>(c);
    const auto nearer = [&](std::uint32_t a, std::uint32_t b) {
        const float left = space.part_scores[a];
        const float right = space.part_scores[b];
        return left != right ? left < right : a < b;
    };
    std::nth_element(space.order.begin(), space.order.begin() + static_cast<std::ptrdiff_t>(width - 1),
                     space.order.end(), nearer);
    std::vector<std::uint64_t>& leaves = space.leaves[part];
    leaves.clear();
    thread_local std::vector<float> scores;
    scores.resize(padded_k2_);
    const std::size_t floats = tree.width(part) * padded_k2_;
    for (std::size_t i = 0; i < width; ++i) {
        const std::uint32_t c = space.order[i];
        score_packed(squared_, level2_.data() + tree.begin(part) * tree.k1 * padded_k2_ + c * floats,
                     padded_k2_ / PackedLines::block, tree.width(part), query + tree.begin(part), scores.data());
        for (std::size_t j = 0; j < tree.k2; ++j)
            leaves.push_back(ordered_key(orderable(scores[j]), static_cast<std::uint32_t>(c * tree.k2 + j)));
    }
}

// Sorts the `ranks` nearest leaves of each part.
void CpuProposer::sort_leaves(std::size_t ranks, Workspace& space) const
{
    space.ranked.resize(space.leaves.size());
    for (std::size_t part = 0; part < space.leaves.size(); ++part) {
        std::vector<std::uint64_t>& leaves = space.leaves[part];
        const std::size_t count = std::min(ranks, leaves.size());
        if (count < leaves.size()) select_smallest(leaves, count);
        std::sort(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(count));
        space.ranked[part].resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            const Candidate leaf = candidate_of(leaves[i]);
            space.ranked[part][i] = {leaf.score, leaf.row};
        }
    }
}

// Finds at least the `wanted` and at most the `most` nearest bins. Few leaves are sorted at first; that is enough where
// no bin with another leaf could be as near as the farthest bin found.
void CpuProposer::order_bins(std::size_t wanted, std::size_t most, Workspace& space) const
{
    if (space.ranked.empty()) sort_leaves(space.ranks = fewest_ranks, space);
    for (;; sort_leaves(space.ranks *= 4, space)) {
        space.bins.clear();
        nearest_bins(space.ranked, shape_.tree.leaves(), wanted, std::min(wanted + wanted / 4, most), space.bins);
        if (space.ranks >= space.leaves.front().size()) return;
        float nearest = 0;
        for (const auto& part : space.ranked) nearest += part.front().score;
        float farthest = nearest;
        for (const ScoredBin& bin : space.bins) farthest = std::max(farthest, bin.score);
        bool enough = space.bins.size() >= wanted;
        for (const auto& part : space.ranked)
            enough = enough && nearest - part.front().score + part.back().score > farthest;
        if (enough) return;
    }
}

// Collects the bins with rows; returns the number of these rows that live.
std::size_t CpuProposer::visit_bins(RowBitmap dead, Workspace& space) const
{
    // Most bins are empty. A bit tells, of a table that the caches hold; without branches, the loads of one bin do not
    // wait for those of another.
    space.visited.resize(space.bins.size());
    std::size_t count = 0;
    for (const ScoredBin& bin : space.bins) {
        const std::uint64_t slot = lists_.slots().slot(bin.bin);
        space.visited[count].score = bin.score;
        space.visited[count].slot = slot;
        count += lists_.holds_rows(slot) ? 1 : 0;
    }
    space.visited.resize(count);
    for (VisitedBin& bin : space.visited) {
        bin.begin = lists_.begin(bin.slot);
        bin.end = lists_.end(bin.slot);
        bin.live = bin.end - bin.begin;
    }
    if (lists_.slots().hashed) {
        // A slot is visited once, for the nearest of its bins.
        std::ranges::sort(space.visited, [](const VisitedBin& a, const VisitedBin& b) {
            return a.slot != b.slot ? a.slot < b.slot : a.score < b.score;
        });
        const auto repeated = std::ranges::unique(space.visited, {}, &VisitedBin::slot);
        space.visited.erase(repeated.begin(), repeated.end());
    }
    std::size_t live = 0;
    for (VisitedBin& bin : space.visited) {
        for (std::uint32_t position = bin.begin; !dead.empty() && position < bin.end; ++position)
            bin.live -= bit_is_set(dead, lists_.row_at(position)) ? 1 : 0;
        live += bin.live;
    }
    return live;
}

// Takes the nearest bins that hold so many live rows, or all bins within the width. The number of bins is not known
// before: it is as many for a row as in the last search, and grows until there are enough. What is taken does not depend
// on it. Returns false where these rows lie in more bins than a search visits.
bool CpuProposer::take_bins(std::size_t candidates, RowBitmap dead, Workspace& space) const
{
    std::size_t all = 1;
    for (const auto& part : space.leaves) all = std::min(all * part.size(), most_bins);
    const std::size_t most = std::min(all, std::max(fewest_bins, most_bins_per_row * lists_.rows()));
    const float guess = spare_bins * bins_per_row_.load(std::memory_order_relaxed) * static_cast<float>(candidates);
    std::size_t wanted = std::max(fewest_bins, static_cast<std::size_t>(guess));
    space.ranked.clear();
    for (;;) {
        wanted = std::min(wanted, most);
        order_bins(wanted, most, space);
        bins_visited_.fetch_add(space.bins.size(), std::memory_order_relaxed);
        const std::size_t live = visit_bins(dead, space);
        const float per_row = static_cast<float>(space.bins.size()) / static_cast<float>(live + 1);
        if (live >= candidates) {
            if (dead.empty()) bins_per_row_.store(per_row, std::memory_order_relaxed);
            cut_bins(candidates, space);
            return true;
        }
        if (space.bins.size() >= most) return most == all;
        const double missing = static_cast<double>(candidates) / static_cast<double>(live + 1);
        wanted = static_cast<std::size_t>(static_cast<double>(space.bins.size()) * std::clamp(1.2 * missing, 1.5, 4.0));
    }
}

// Keeps the nearest bins that hold enough live rows. They are not sorted but counted by score; only those near the cut
// are sorted.
void CpuProposer::cut_bins(std::size_t candidates, Workspace& space) const
{
    std::vector<VisitedBin>& bins = space.visited;
    const auto [least, most] = std::ranges::minmax(bins, {}, &VisitedBin::score);
    const float per_score = most.score > least.score ? buckets / (most.score - least.score) : 0;
    const float origin = least.score;
    const auto bucket_of = [&](const VisitedBin& bin) {
        const float at = (bin.score - origin) * per_score;
        return at < static_cast<float>(buckets - 1) ? static_cast<std::size_t>(at) : buckets - 1;
    };
    std::size_t rows[buckets] = {};
    for (const VisitedBin& bin : bins) rows[bucket_of(bin)] += bin.live;
    std::size_t last = 0;
    std::size_t before = 0;
    while (last + 1 < buckets && before + rows[last] < candidates) before += rows[last++];
    const auto tail = std::partition(bins.begin(), bins.end(), [&](const auto& bin) { return bucket_of(bin) < last; });
    const auto end = std::partition(tail, bins.end(), [&](const auto& bin) { return bucket_of(bin) == last; });
    std::sort(tail, end, [](const VisitedBin& a, const VisitedBin& b) {
        return a.score != b.score ? a.score < b.score : a.slot < b.slot;
    });
    auto kept = tail;
    for (; kept != end && before < candidates; ++kept) before += kept->live;
    bins.erase(kept, bins.end());
}

void CpuProposer::list_positions(RowBitmap dead, Workspace& space) const
{
    constexpr std::size_t line = 64;
    space.positions.clear();
    for (const VisitedBin& bin : space.visited) {
        const std::uint8_t* codes = codes_.data() + std::size_t{bin.begin} * 2 * padded_parts_;
        const std::size_t bytes = std::min<std::size_t>((bin.end - bin.begin) * 2 * padded_parts_, 8 * line);
        for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(codes + at);
        for (std::uint32_t position = bin.begin; position < bin.end; ++position) {
            if (dead.empty() || !bit_is_set(dead, lists_.row_at(position))) space.positions.push_back(position);
        }
    }
}

void CpuProposer::list_all(RowBitmap dead, Workspace& space) const
{
    space.positions.clear();
    for (std::uint32_t position = 0; position < lists_.rows(); ++position) {
        if (dead.empty() || !bit_is_set(dead, lists_.row_at(position))) space.positions.push_back(position);
    }
}

// Ranks the candidates by their codes.
std::vector<Candidate> CpuProposer::best_of(std::size_t wanted, Workspace& space, const CancelToken* cancel) const
{
    make_terms(arrays_, space.centroid_scores.data(), padded_k1_, space.terms);
    const std::size_t count = space.positions.size();
    TopK best(std::min(wanted, count));
    space.scores.resize(std::min(count, scored_at_a_time));
    for (std::size_t first = 0; first < count; first += scored_at_a_time) {
        if (cancel != nullptr) cancel->check();
        const std::size_t some = std::min(scored_at_a_time, count - first);
        score_codes(space.terms, codes_.data(), biases_.data(), padded_parts_, space.positions.data() + first, some,
                    space.scores.data());
        best.push_block(space.scores.data(), some, static_cast<std::uint32_t>(first));
    }
    std::vector<Candidate> ranked = best.take_sorted();
    for (Candidate& one : ranked) one.row = lists_.row_at(space.positions[one.row]);
    return ranked;
}

std::vector<Candidate> CpuProposer::propose_one(const float* query, const SearchPlan& plan, RowBitmap dead,
                                                const CancelToken* cancel) const
{
    thread_local Workspace space;
    score_centroids(query, space);
    bool listed = false;
    if (!plan.complete) {
        descend(query, plan.width, space);
        listed = take_bins(plan.candidates, dead, space);
    }
    if (listed) {
        list_positions(dead, space);
    } else {
        list_all(dead, space);
    }
    return best_of(plan.ranked, space, cancel);
}

void CpuProposer::propose(std::span<const float> queries, const SearchPlan& plan, RowBitmap dead,
                          std::vector<std::vector<Candidate>>& proposed, ThreadPool& pool,
                          const CancelToken* cancel) const
{
    const std::size_t dimensions = shape_.tree.dimensions;
    proposed.assign(queries.size() / dimensions, {});
    pool.parallel_for(proposed.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            if (cancel != nullptr) cancel->check();
            proposed[q] = propose_one(queries.data() + q * dimensions, plan, dead, cancel);
        }
    });
}

}  // namespace

std::unique_ptr<TreeProposer> make_cpu_proposer(Metric metric, const TreeOptions& options, const ProductTree& tree,
                                                const LineTable& lines, std::span<const std::uint8_t> codes,
                                                ThreadPool& pool)
{
    return std::make_unique<CpuProposer>(metric, options, tree, lines, codes, pool);
}

}  // namespace pgwarp
