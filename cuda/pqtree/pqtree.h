// The method pqtree on the device, with the contract of src/methods/pqtree.
#pragma once

#include <memory>
#include <span>

#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::cuda::pqtree
{

// A setting of searches for proposals alone: their number. The settings width and candidates are then taken as given.
inline constexpr char setting_proposed[] = "proposed";

// Makes a searcher on the given context, or on the one with the most free memory. Throws std::bad_alloc where the index
// does not fit, BadRequest for wrong arrays. codes: the array of codes where it is on the device already and all
// written.
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays, Context& context,
                                        DeviceArray<std::uint8_t> codes = {});
std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays);

}  // namespace pgwarp::cuda::pqtree
