#include "index/ivfadc/proposer.h"

#include "numeric/distance.h"

namespace pgwarp
{

bool Proposer::build(Metric metric, std::size_t dimensions, std::span<const float> centroids,
                     const InvertedLists& lists, const RowStore& store, StoredBytes* stored, ThreadPool& pool)
{
    std::vector<float> first(dimensions);
    if (lists.rows() == 0 || (stored == nullptr && !store.decode(0, first.data()))) return false;
    metric_ = metric;
    dimensions_ = dimensions;
    centroids_ = centroids;

    std::vector<double> sum(dimensions, 0.0);
    for (std::size_t i = 0; i < centroids.size(); ++i) sum[i % dimensions] += centroids[i];
    origin_.resize(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d)
        origin_[d] = static_cast<float>(sum[d] / static_cast<double>(lists.lists()));
    centres_.layout({static_cast<std::uint32_t>(lists.lists())}, dimensions, metric == Metric::l2);
    for (std::size_t list = 0; list < lists.lists(); ++list)
        centres_.set(list, centroids.data() + list * dimensions, origin_.data());

    if (stored != nullptr) {
        rows_ = stored->take(pool);
    } else {
        derive_rows(lists, store, pool);
    }
    return true;
}

void Proposer::derive_rows(const InvertedLists& lists, const RowStore& store, ThreadPool& pool)
{
    std::vector<std::uint32_t> sizes(lists.lists());
    for (std::size_t list = 0; list < sizes.size(); ++list) sizes[list] = lists.end(list) - lists.begin(list);
    rows_.layout(sizes, dimensions_, metric_ == Metric::l2);
    pool.parallel_for(lists.lists(), 4, [&](std::size_t begin, std::size_t end) {
        std::vector<float> row(dimensions_);
        for (std::size_t list = begin; list < end; ++list) {
            for (std::size_t i = 0; i < sizes[list]; ++i) {
                store.decode(lists.begin(list) + i, row.data());
                rows_.set(rows_.begin(list) + i, row.data(), centroids_.data() + list * dimensions_);
            }
        }
    });
}

std::vector<Candidate> Proposer::nearest_lists(const float* query, std::size_t probes) const
{
    thread_local ByteQuery bytes;
    thread_local std::vector<float> scores;
    scores.resize(centres_.longest());
    bytes.assign(query, metric_ == Metric::l2 ? origin_.data() : nullptr, dimensions_);
    centres_.score(0, bytes, 0, scores.data());
    TopK best(probes);
    best.push_block(scores.data(), centres_.size(0), 0);
    return best.take_sorted();
}

void Proposer::scan(const float* query, std::uint32_t list, const InvertedLists& lists, RowBitmap dead,
                    TopK& best) const
{
    thread_local ByteQuery bytes;
    thread_local std::vector<float> scores;
    thread_local std::vector<std::uint32_t> below;
    scores.resize(rows_.longest());
    below.resize(rows_.longest() + ByteLists::block);
    const float* centroid = centroids_.data() + std::size_t{list} * dimensions_;
    float base = 0;
    if (metric_ == Metric::l2) {
        bytes.assign(query, centroid, dimensions_);
        base = bytes.squared_norm;
    } else {
        bytes.assign(query, nullptr, dimensions_);
        base = score(Metric::inner_product, query, centroid, dimensions_);
    }
    rows_.score(list, bytes, base, scores.data());
    const std::size_t found = select_below(scores.data(), rows_.size(list), best.threshold(), below.data());
    const std::uint32_t first = lists.begin(list);
    for (std::size_t i = 0; i < found; ++i) {
        const std::uint32_t position = first + below[i];
        if (bit_is_set(dead, lists.row_at(position))) continue;
        best.push(scores[below[i]], position);
    }
}

}  // namespace pgwarp
