// The proposing stage on the CPU: descent, bins, line codes.
#include "methods/pqtree/proposer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "methods/pqtree/bin_choice.h"
#include "methods/pqtree/search_kernels.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t scored_at_a_time = 4096;  // candidates

// The memory of a search, of each thread.
struct Workspace {
    std::vector<float> centroid_scores;  // [line parts][padded k1]
    std::vector<float> part_scores;      // [padded k1], then of leaves
    std::vector<std::uint32_t> order;
    LeafKeys leaves;
    BinChoice bins;
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
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t d = 0; d < width; ++d)
            out[i / packed_block * packed_block * width + d * packed_block + i % packed_block] =
                level[(first + i) * dimensions + begin + d];
    }
}

class CpuProposer : public CpuTreeProposer
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
    std::uint64_t bins_visited() const override { return statistics_.bins_visited.load(std::memory_order_relaxed); }
    std::uint32_t row_at(std::size_t position) const override { return lists_.row_at(position); }
    void read_line_code(std::size_t position, std::uint8_t* out) const override
    {
        const std::uint8_t* code = codes_.data() + position * 2 * padded_parts_;
        std::memcpy(out, code, shape_.line_parts);
        std::memcpy(out + shape_.line_parts, code + padded_parts_, shape_.line_parts);
    }

private:
    void pack_tree(const ProductTree& tree);
    void pack_codes(const TreeOptions& options, const LineTable& lines, std::span<const float> lengths,
                    std::span<const std::uint8_t> codes, ThreadPool& pool);

    void score_centroids(const float* query, Workspace& space) const;
    void descend(const float* query, std::size_t width, Workspace& space) const;
    void descend_part(const float* query, std::size_t part, std::size_t width, Workspace& space) const;
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
    mutable BinStatistics statistics_;
};

CpuProposer::CpuProposer(Metric metric, const TreeOptions& options, const ProductTree& tree, const LineTable& lines,
                         std::span<const std::uint8_t> codes, ThreadPool& pool)
    : squared_(tree_metric(metric) == Metric::l2),
      shape_(lines.shape),
      padded_k1_(padded(tree.shape.k1)),
      padded_k2_(padded(tree.shape.k2)),
      padded_parts_(padded(lines.shape.line_parts)),
      lists_(tree.shape, codes, options.code_bytes(), pool)
{
    pack_tree(tree);
    const std::vector<float> lengths = line_lengths(tree, lines, tree_metric(metric));
    for (std::size_t number = 0; number < shape_.line_parts; ++number) arrays_.emplace_back(lines, number, lengths);
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
        score_packed(squared_, level1_.data() + shape_.begin(number) * padded_k1_, shape_.tree.k1, shape_.width(number),
                     query + shape_.begin(number), space.centroid_scores.data() + number * padded_k1_);
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
        score_packed(squared_, level2_.data() + tree.begin(part) * tree.k1 * padded_k2_ + c * floats, tree.k2,
                     tree.width(part), query + tree.begin(part), scores.data());
        for (std::size_t j = 0; j < tree.k2; ++j)
            leaves.push_back(ordered_key(orderable(scores[j]), static_cast<std::uint32_t>(c * tree.k2 + j)));
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
        listed = space.bins.run(lists_, shape_.tree.leaves(), space.leaves, plan.candidates, dead, cancel, statistics_,
                                space.positions);
    }
    if (!listed) list_all(dead, space);
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

std::unique_ptr<CpuTreeProposer> make_cpu_proposer(Metric metric, const TreeOptions& options, const ProductTree& tree,
                                                   const LineTable& lines, std::span<const std::uint8_t> codes,
                                                   ThreadPool& pool)
{
    return std::make_unique<CpuProposer>(metric, options, tree, lines, codes, pool);
}

}  // namespace pgwarp
