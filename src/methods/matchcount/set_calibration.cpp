// Distances and match counts of the sample, in one pass over the rows.
#include "methods/matchcount/set_calibration.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "numeric/hash.h"
#include "protocol/part_rows.h"
#include "protocol/standing_out.h"

namespace pgwarp::matchcount
{

namespace
{

static_assert(standing_out_values == set_digests);

constexpr std::size_t rows_together = 16;    // that a thread looks up at a time
constexpr std::size_t queries_together = 8;  // that a thread adds to at a time

using Occurrence = std::pair<std::uint64_t, std::uint16_t>;  // {element, set}

std::vector<Occurrence> occurrences_in(const RowView& sets)
{
    std::vector<Occurrence> occurrences;
    for (std::size_t set = 0; set < sets.count; ++set) {
        const std::span<const std::uint32_t> words = sets.list(set);
        for (std::size_t at = 0; at < words.size(); at += set_words)
            occurrences.emplace_back(part_number(&words[at]), static_cast<std::uint16_t>(set));
    }
    std::sort(occurrences.begin(), occurrences.end());
    return occurrences;
}

std::size_t size_of(const RowView& sets, std::size_t set)
{
    return sets.list(set).size() / set_words;
}

}  // namespace

ElementIndex::ElementIndex(const RowView& sets)
{
    const std::vector<Occurrence> occurrences = occurrences_in(sets);
    slots_.resize(std::bit_ceil(2 * occurrences.size() + 1));
    for (const auto& [element, set] : occurrences) {
        std::size_t at = home_of(element);
        while (slots_[at].count > 0 && slots_[at].element != element) at = (at + 1) % slots_.size();
        if (slots_[at].count == 0) slots_[at] = {element, static_cast<std::uint32_t>(sets_.size()), 0};
        ++slots_[at].count;
        sets_.push_back(set);
    }
}

std::size_t ElementIndex::home_of(std::uint64_t element) const
{
    return mix_hash(element) % slots_.size();
}

std::span<const std::uint16_t> ElementIndex::find(std::uint64_t element) const
{
    for (std::size_t at = home_of(element); slots_[at].count > 0; at = (at + 1) % slots_.size()) {
        const Slot& slot = slots_[at];
        if (slot.element == element) return std::span(sets_).subspan(slot.first, slot.count);
    }
    return {};
}

void add_measured_options(const SetCalibration& calibration, ParameterList& options)
{
    if (calibration.curve.count == 0) return;
    options.set(option_standing_out, calibration.standing_out);
    options.set(option_standing_within, calibration.standing_within);
}

std::size_t sample_within_words(std::size_t wanted, double words_a_row)
{
    const double rows = static_cast<double>(most_sampled_words) / std::max(1.0, words_a_row);
    return std::min(wanted, std::max(fewest_measured_queries, static_cast<std::size_t>(rows)));
}

SetRecall::SetRecall(const SetHashes& hashes, std::vector<std::uint32_t> own, const RowView& queries,
                     std::vector<std::uint8_t> signatures)
    : hashes_(hashes),
      own_(own),
      recall_(hashes.functions(), std::move(own)),
      elements_(queries),
      signatures_(std::move(signatures)),
      similarities_(queries.count, Similarities(similarity_steps + 1))
{
    for (std::size_t q = 0; q < queries.count; ++q) sizes_.push_back(size_of(queries, q));
}

void SetRecall::add(const RowView& rows, const std::uint8_t* signatures, std::size_t first, RowBitmap dead,
                    ThreadPool& pool)
{
    rows_ += live_rows(first, rows.count, dead);
    std::vector<std::uint16_t> common(recall_.queries() * rows.count);  // [queries][rows]
    pool.parallel_for(rows.count, rows_together, [&](std::size_t begin, std::size_t end) {
        std::vector<std::uint16_t> shared(recall_.queries());
        for (std::size_t i = begin; i < end; ++i) {
            std::fill(shared.begin(), shared.end(), std::uint16_t{0});
            const std::span<const std::uint32_t> words = rows.list(i);
            for (std::size_t at = 0; at < words.size(); at += set_words)
                for (const std::uint16_t query : elements_.find(part_number(&words[at]))) ++shared[query];
            for (std::size_t q = 0; q < shared.size(); ++q) common[q * rows.count + i] = shared[q];
        }
    });
    pool.parallel_for(recall_.queries(), queries_together, [&](std::size_t begin, std::size_t end) {
        std::vector<float> scores(rows.count);
        std::vector<std::uint16_t> counts(rows.count);
        for (std::size_t q = begin; q < end; ++q) {
            for (std::size_t i = 0; i < rows.count; ++i) {
                const std::uint16_t shared = common[q * rows.count + i];
                const double distance = jaccard_distance_of_sets(shared, sizes_[q], size_of(rows, i));
                scores[i] = static_cast<float>(distance);
                if (first + i != own_[q] && !bit_is_set(dead, first + i))
                    ++similarities_[q][static_cast<std::size_t>((1 - distance) * similarity_steps)];
            }
            hashes_.count_matches(signatures_.data() + q * hashes_.signature_bytes(), signatures, rows.count,
                                  counts.data());
            recall_.add(q, scores, counts, first, dead);
        }
    });
}

double SetRecall::standing_out_similarity_of(std::size_t query) const
{
    const Similarities& rows = similarities_[query];
    const auto quantile = [&](double share) {
        const double wanted = share * static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::size_t{0}));
        std::size_t step = 0;
        for (double below = rows[0]; below < wanted; below += rows[step]) ++step;
        return static_cast<double>(step) / similarity_steps;
    };
    return standing_out_similarity(quantile(0.25), quantile(0.75), static_cast<double>(hashes_.functions()));
}

SetCalibration SetRecall::measured() const
{
    std::vector<CountedNeighbours> counted;
    std::vector<double> distances;
    SetCalibration result{};
    for (std::size_t q = 0; q < own_.size(); ++q) {
        const double distance = 1 - standing_out_similarity_of(q);
        counted.push_back({static_cast<float>(distance), hashes_.collision_chance(1 - distance / 2)});
        distances.push_back(distance);
        result.standing_out += recall_.has_counted(q, counted.back());
    }
    result.curve = recall_.curve(rows_, counted);
    if (!distances.empty()) {
        const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
        std::nth_element(distances.begin(), middle, distances.end());
        result.standing_within = static_cast<std::uint32_t>(std::lround(*middle * 1e6));
    }
    return result;
}

}  // namespace pgwarp::matchcount
