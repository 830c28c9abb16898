// Options of ivfadc, and the numbers that follow from rows, dimensions and lists.
#include <algorithm>
#include <cmath>

#include "methods/ivfadc/defaults.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/options.h"

namespace pgwarp
{

using ivfadc::choose_lists;
using ivfadc::choose_subquantizers;

IvfOptions IvfOptions::resolve(const ParameterList& options, std::size_t rows, std::size_t dimensions)
{
    IndexShape column{};
    column.dimensions = static_cast<std::uint32_t>(dimensions);
    require_options(ivfadc_description, options, column);
    const std::int64_t lists = options.get("lists", 0);
    const std::int64_t subquantizers = options.get("subquantizers", 0);
    const auto codes = static_cast<IvfCodes>(options.get("codes", 0));
    IvfOptions resolved;
    resolved.lists = lists != 0 ? static_cast<std::size_t>(lists) : choose_lists(rows);
    resolved.lists = std::clamp<std::size_t>(resolved.lists, 1, std::max<std::size_t>(rows, 1));
    resolved.product_codes = codes == IvfCodes::pq;
    resolved.byte_codes = codes == IvfCodes::int8;
    resolved.subquantizers =
        subquantizers != 0 ? static_cast<std::size_t>(subquantizers) : choose_subquantizers(dimensions);
    resolved.opq = resolved.product_codes && options.get("opq", 0) != 0;
    resolved.refine = static_cast<IvfRefine>(options.get("refine", static_cast<int>(IvfRefine::half)));
    return resolved;
}

ParameterList IvfOptions::as_parameters() const
{
    ParameterList list;
    list.set("lists", static_cast<std::int64_t>(lists));
    list.set("codes", static_cast<int>(product_codes ? IvfCodes::pq : byte_codes ? IvfCodes::int8 : IvfCodes::half));
    list.set("subquantizers", static_cast<std::int64_t>(subquantizers));
    list.set("opq", opq ? 1 : 0);
    list.set("refine", static_cast<std::int64_t>(refine));
    return list;
}

Metric coarse_metric(Metric metric)
{
    return metric == Metric::l2 ? Metric::l2 : Metric::inner_product;
}

std::vector<std::int64_t> probe_schedule(std::size_t lists)
{
    std::vector<std::int64_t> schedule;
    const auto most = static_cast<std::int64_t>(lists);
    // Steps of about a fifth; forty points reach 65,536.
    for (double probes = 1; schedule.size() + 1 < Calibration::capacity && probes < static_cast<double>(most);) {
        schedule.push_back(static_cast<std::int64_t>(probes));
        probes = std::max(std::floor(probes * (probes < 128 ? 1.2 : 1.5)), probes + 1);
    }
    schedule.push_back(most);
    return schedule;
}

}  // namespace pgwarp
