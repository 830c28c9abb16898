// The searcher of the inverted file on the device: effort and refinement of a batch, and retries with more lists.
#include <algorithm>
#include <cmath>

#include "ivfadc/device_search.h"
#include "ivfadc/ivfadc.h"
#include "ivfadc/refine_factor.h"
#include "rows/mirror_searcher.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

class IvfadcSearcher : public rows::ListedSearcher<Mirror>
{
public:
    IvfadcSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                   Context& context)
        : ListedSearcher(shape, options, arrays, context, "ivfadc workspace")
    {
    }
    // In float operations of the CPU: the device does some thousand in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override
    {
        const double scanned = static_cast<double>(mirror_.rows()) * static_cast<double>(probes_of(batch)) /
                               static_cast<double>(mirror_.lists());
        return 1e-3 * static_cast<double>(batch.count) * (static_cast<double>(mirror_.lists()) + scanned) *
               static_cast<double>(mirror_.dimensions());
    }
    // More lists where fewer rows pass, as on the CPU.
    std::int64_t filtered_effort(std::int64_t effort, double pass_rate) const override
    {
        const double most = static_cast<double>(mirror_.lists());
        return static_cast<std::int64_t>(std::min(std::ceil(static_cast<double>(effort) / pass_rate), most));
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set("probes", static_cast<std::int64_t>(probes_of(batch)));
        settings.set("refine_factor", static_cast<std::int64_t>(refine_factor_of(batch)));
        return settings;
    }

protected:
    void finish_mirror(ThreadPool& pool) override
    {
        mirror_.finish_load(pool);
        if (mirror_.form() == Form::codes && !mirror_.view().scans_bytes) measure_factors(pool);
    }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        const double ranked = static_cast<double>(batch.count) * batch.k * static_cast<double>(refine_factor_of(batch));
        return patience_for(2e3 * search_cost(batch), ranked * static_cast<double>(mirror_.remote_row_bytes()));
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        search_lists(batch, Round(batch), probes_of(batch), true, bits_of(dead), results, pool);
    }

private:
    std::size_t probes_of(const SearchBatch& batch) const;
    // Where scan and values use the same vectors, only near ties need ranking. Bytes propose for other vectors, so as
    // many candidates are ranked as on the CPU. For product codes the factor is measured.
    std::size_t refine_factor_of(const SearchBatch& batch) const
    {
        const std::int64_t asked = batch.settings.get("refine_factor", 0);
        if (asked > 0) return static_cast<std::size_t>(asked);
        if (mirror_.view().scans_bytes) {
            if (mirror_.view().values_of_residuals()) return 1;
            return batch.k <= 20 ? 3 : 2;
        }
        return mirror_.form() == Form::codes ? factors_.of(batch.k) : 1;
    }
    void measure_factors(ThreadPool& pool);
    void search_lists(const SearchBatch& batch, const Round& round, std::size_t probes, bool may_limit,
                      const std::uint32_t* dead, Results& results, ThreadPool& pool) const;

    RefineFactors factors_;
};

std::size_t IvfadcSearcher::probes_of(const SearchBatch& batch) const
{
    std::int64_t probes = batch.settings.get("probes", 0);
    if (probes <= 0) probes = batch.effort;
    // An index too small for calibration is searched as a whole.
    if (probes <= 0) probes = static_cast<std::int64_t>(mirror_.lists());
    return std::min<std::size_t>(static_cast<std::size_t>(probes), mirror_.lists());
}

void IvfadcSearcher::measure_factors(ThreadPool& pool)
{
    constexpr std::size_t most_queries = 128;
    constexpr double share = 0.998;
    const std::size_t count = std::min(most_queries, mirror_.rows());
    if (count == 0) return;
    std::vector<float> queries(count * mirror_.dimensions());
    for (std::size_t i = 0; i < count; ++i) {
        mirror_.read_remote(sample_row(i, count, mirror_.rows()),
                            std::span(queries).subspan(i * mirror_.dimensions(), mirror_.dimensions()));
    }
    // More than most searches probe: the more rows are probed, the more of them come between the wanted rows.
    const std::size_t probes = std::min(mirror_.lists(), std::clamp<std::size_t>(mirror_.lists() / 8, 64, 512));
    factors_ = measure_refine_factors(*this, queries, count, mirror_.rows(), probes, share, pool);
}

// Queries whose limit let too many candidates pass are searched again without a limit. Queries that found too few rows
// probe more lists and at last scan all rows by value: scores out of float's range may hide rows, values do not.
void IvfadcSearcher::search_lists(const SearchBatch& batch, const Round& round, std::size_t probes, bool may_limit,
                                  const std::uint32_t* dead, Results& results, ThreadPool& pool) const
{
    const std::size_t rows = mirror_.rows();
    const std::size_t k = std::min<std::size_t>(batch.k, rows);
    // Scores in single precision may swap near ties, so a few more than k are ranked by their values.
    const std::size_t wanted =
        std::min<std::size_t>(rows, std::max<std::size_t>(k * refine_factor_of(batch), k + 8 + k / 8));
    const auto plan_of = [&](std::size_t, std::size_t count, std::size_t room) {
        return plan_search(mirror_, count, probes, wanted, k, may_limit, room);
    };
    const auto enqueue = [&](const SearchPlan& plan, const Chunk& chunk) {
        enqueue_search(mirror_, plan, chunk, dead);
    };
    Unfinished left = search_round(batch, round, plan_of, enqueue, results, pool);
    if (!left.unanswered.empty()) {
        search_lists(batch, Round(batch, std::move(left.unanswered)), probes, false, dead, results, pool);
    }
    if (left.few.empty()) return;
    const Round few(batch, std::move(left.few));
    if (probes == mirror_.lists()) return search_all_rows(batch, few, results, pool);
    search_lists(batch, few, std::min(4 * probes, mirror_.lists()), may_limit, dead, results, pool);
}

}  // namespace

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context)
{
    const DevicePatience patience(build_patience);
    return std::make_unique<IvfadcSearcher>(shape, options, arrays, context);
}

std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return make_searcher(shape, options, arrays, roomiest(contexts()));
}

}  // namespace pgwarp::cuda::ivfadc
