// The searcher of the inverted file on the device: effort and refinement of a batch, and retries with more lists.
#include <algorithm>
#include <cmath>

#include "device/error.h"
#include "device/searcher.h"
#include "device/wait.h"
#include "ivfadc/device_search.h"
#include "ivfadc/ivfadc.h"
#include "ivfadc/refine_factor.h"
#include "methods/bounds.h"
#include "methods/device_wait.h"
#include "rows/forms.h"

namespace pgwarp::cuda::ivfadc
{

namespace
{

class IvfadcSearcher : public DeviceSearcher
{
public:
    IvfadcSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays,
                   Context& context)
        : DeviceSearcher(context, shape.dimensions, "ivfadc workspace"), mirror_(context, shape, options, arrays)
    {
    }
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        const DevicePatience patience(build_patience);
        mirror_.write(array, offset, bytes);
    }
    void finish_load(ThreadPool& pool) override
    {
        const DevicePatience patience(build_patience);
        mirror_.finish_load(pool);
        if (mirror_.form() == Form::codes && !mirror_.view().scans_bytes) measure_factors(pool);
    }
    std::uint64_t memory_bytes() const override { return mirror_.device_bytes() + mirror_.host_bytes(); }
    Residence residence() const override
    {
        return {mirror_.context().device(), mirror_.form() != Form::whole, mirror_.device_bytes()};
    }
    ResultKind result_kind() const override
    {
        if (mirror_.options().keeps_full()) {
            return mirror_.metric() == Metric::cosine ? ResultKind::lower_bound : ResultKind::exact;
        }
        return mirror_.options().keeps_half() ? ResultKind::lower_bound : ResultKind::approximate;
    }
    double bound_width(const float* query) const override
    {
        const Metric metric = mirror_.metric();
        if (mirror_.options().keeps_full()) return metric == Metric::cosine ? pgwarp::bound_width(metric, 0, 1) : 0;
        if (!mirror_.options().keeps_half()) return 0;
        return pgwarp::bound_width(metric, mirror_.half_error(), canonical_norm(query, mirror_.dimensions()));
    }
    // In float operations of the CPU: the device does some thousand in the time of one of the CPU's.
    double search_cost(const SearchBatch& batch) const override
    {
        const double scanned = static_cast<double>(mirror_.rows()) * static_cast<double>(probes_of(batch)) /
                               static_cast<double>(mirror_.lists());
        return 1e-3 * static_cast<double>(batch.count) * (static_cast<double>(mirror_.lists()) + scanned) *
               static_cast<double>(mirror_.dimensions());
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set("probes", static_cast<std::int64_t>(probes_of(batch)));
        settings.set("refine_factor", static_cast<std::int64_t>(refine_factor_of(batch)));
        return settings;
    }

protected:
    std::size_t row_count() const override { return mirror_.rows(); }
    std::size_t remote_row_bytes() const override { return mirror_.remote_row_bytes(); }
    std::chrono::milliseconds search_patience(const SearchBatch& batch) const override
    {
        const double ranked = static_cast<double>(batch.count) * batch.k * static_cast<double>(refine_factor_of(batch));
        return patience_for(2e3 * search_cost(batch), ranked * static_cast<double>(mirror_.remote_row_bytes()));
    }
    // The form: one bit for each position. The bits of rows are freed.
    Tombstones make_tombstones(RowBitmap bitmap, const Context::Lease& stream) const override
    {
        Tombstones dead = DeviceSearcher::make_tombstones(bitmap, stream);
        const MirrorView& view = mirror_.view();
        dead.form = DeviceArray<std::byte>(context().pool(), view.positions / 8, "ivfadc dead rows", stream);
        dead_positions(dead.words.data(), view.row_at, view.positions,
                       reinterpret_cast<std::uint32_t*>(dead.form.data()), stream);
        wait_for(stream, "placing dead rows");
        dead.words = {};
        return dead;
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        search_lists(batch, Round(batch), probes_of(batch), true, positions_of(dead), results, pool);
    }
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const override
    {
        const auto enqueue = [&](const ChunkPlan& plan, const Chunk& chunk) {
            enqueue_continuation(mirror_, plan, chunk, {after.distance, after.row}, positions_of(dead));
        };
        search_one(one, plan_continuation(mirror_, one.k), enqueue, answer, pool);
    }

private:
    static const std::uint32_t* positions_of(const Tombstones* dead)
    {
        return dead != nullptr ? dead->form_as<std::uint32_t>() : nullptr;
    }
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

    Mirror mirror_;
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
