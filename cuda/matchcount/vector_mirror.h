// The vectors of an index in device memory, and their signatures in the dense form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "device/context.h"
#include "matchcount/candidate_ranks.h"
#include "matchcount/dense_rows.h"
#include "matchcount/signatures.h"
#include "methods/method.h"

namespace pgwarp::cuda
{

class VectorMirror
{
public:
    // Throws BadRequest for arrays that do not fit the shape and the options, std::bad_alloc.
    VectorMirror(Context& context, const IndexShape& shape, const ParameterList& options,
                 std::span<const ArrayShape> arrays);

    // Thread-safe for different pieces. Waits for the copy.
    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes);

    std::uint32_t rows() const { return rows_; }
    matchcount::DeviceHashes hashes() const;
    matchcount::DenseRows signatures() const;
    matchcount::RankedVectors vectors() const;
    std::uint64_t device_bytes() const { return parameters_.bytes() + values_.bytes() + vectors_.bytes(); }

private:
    void copy_in(DeviceArray<float>& to, std::uint64_t offset, std::span<const std::byte> bytes);
    void place_in(std::uint64_t offset, std::span<const std::byte> bytes);

    Context& context_;
    pgwarp::matchcount::HashForm form_;
    std::uint32_t dimensions_;
    std::uint32_t rows_ = 0;
    std::uint32_t signature_bytes_ = 0;
    Context::Lease owner_;  // arrays are made and freed in its order
    DeviceArray<float> parameters_;
    DeviceArray<std::uint8_t> values_;  // [functions][dense_stride(rows)]
    DeviceArray<float> vectors_;        // [rows][dimensions]
};

}  // namespace pgwarp::cuda
