// The factory of ivfadc on the CPU.
#include "methods/ivfadc/calibrator.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/ivfadc/merge_build.h"

namespace pgwarp
{

namespace
{

// Delta rows go into the index's lists as bytes, which need no quantizer and propose on every device.
ParameterList part_options(const IndexShape&, const ParameterList&, const ArrayShape* centroids)
{
    ParameterList part;
    part.set("lists", static_cast<std::int64_t>(centroids->rows));
    part.set("codes", static_cast<std::int64_t>(IvfCodes::int8));
    part.set("refine", static_cast<std::int64_t>(IvfRefine::none));
    return part;
}

}  // namespace

const MethodFactory& ivfadc_method()
{
    static const MethodFactory factory{.method = Method::ivfadc,
                                       .make_builder = make_ivfadc_builder,
                                       .make_searcher = make_ivfadc_searcher,
                                       .make_merge_builder = make_ivfadc_merge_builder,
                                       .part_options = part_options,
                                       .part_array = array_centroids,
                                       .make_calibrator = make_ivfadc_calibrator};
    return factory;
}

}  // namespace pgwarp
