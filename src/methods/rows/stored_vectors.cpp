// Values of rows: canonical distances, or lower bounds where the stored form is rounded.
#include "methods/rows/stored_vectors.h"

#include <algorithm>
#include <cstring>

#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/description.h"
#include "numeric/distance.h"

namespace pgwarp
{

ArrayShape stored_shape(VectorForm form, std::size_t rows, std::size_t dimensions)
{
    return form == VectorForm::full ? make_array_shape(array_vectors, ArrayType::f32, rows, dimensions)
                                    : make_array_shape(array_half, ArrayType::f16, rows, dimensions);
}

void decode_stored(VectorForm form, const HalfRows& codec, std::size_t dimensions, const std::byte* stored, float* out)
{
    if (form == VectorForm::full) {
        std::memcpy(out, stored, dimensions * sizeof(float));
        return;
    }
    // Pieces of a message have no alignment.
    thread_local std::vector<half_bits> halves;
    halves.resize(dimensions);
    std::memcpy(halves.data(), stored, dimensions * sizeof(half_bits));
    codec.codec.decode(halves.data(), out);
}

StoredVectors::StoredVectors(Metric metric, std::size_t dimensions, std::size_t rows, VectorForm form,
                             const HalfRows& codec)
    : metric_(metric),
      dimensions_(dimensions),
      form_(form),
      codec_(codec),
      vectors_(form == VectorForm::full ? rows * dimensions : 0),
      halves_(form == VectorForm::half ? rows * dimensions : 0)
{
}

std::span<std::byte> StoredVectors::bytes()
{
    return form_ == VectorForm::full ? std::as_writable_bytes(std::span(vectors_))
                                     : std::as_writable_bytes(std::span(halves_));
}

std::size_t StoredVectors::row_bytes() const
{
    return dimensions_ * (form_ == VectorForm::full ? sizeof(float) : sizeof(half_bits));
}

bool StoredVectors::is_array(const std::string& name) const
{
    return form_ != VectorForm::none && name == (form_ == VectorForm::full ? array_vectors : array_half);
}

ResultKind StoredVectors::result_kind() const
{
    if (form_ == VectorForm::full) return promise_of_vectors(metric_ == Metric::cosine).kind;
    return form_ == VectorForm::half ? ResultKind::lower_bound : ResultKind::approximate;
}

double StoredVectors::bound_width(const float* query) const
{
    if (form_ == VectorForm::none) return 0;
    if (form_ == VectorForm::full) return pgwarp::bound_width(metric_, 0, 1);
    return pgwarp::bound_width(metric_, codec_.scale[1], canonical_norm(query, dimensions_));
}

double StoredVectors::value(const float* query, double query_norm, std::size_t position) const
{
    if (form_ == VectorForm::full) {
        const float* row = vectors_.data() + position * dimensions_;
        const double distance = canonical_distance(metric_, query, row, dimensions_);
        return metric_ == Metric::cosine ? lower_bound(metric_, distance, 0, 1) : distance;
    }
    thread_local std::vector<float> decoded;
    decoded.resize(dimensions_);
    decode(position, decoded.data());
    const double distance = decoded_distance(metric_, query, decoded.data(), dimensions_);
    return lower_bound(metric_, distance, codec_.scale[1], query_norm);
}

void StoredVectors::prefetch(std::size_t position) const
{
    constexpr std::size_t line = 64;
    constexpr std::size_t most = 16 * line;  // the hardware prefetcher loads the rest
    const std::size_t count = form_ == VectorForm::none ? 0 : row_bytes();
    const auto* row = form_ == VectorForm::full ? static_cast<const void*>(vectors_.data() + position * dimensions_)
                                                : static_cast<const void*>(halves_.data() + position * dimensions_);
    for (std::size_t at = 0; at < std::min(count, most); at += line)
        __builtin_prefetch(static_cast<const std::byte*>(row) + at);
}

void StoredVectors::decode(std::size_t position, float* out) const
{
    if (form_ == VectorForm::full) {
        std::copy_n(vectors_.data() + position * dimensions_, dimensions_, out);
    } else {
        codec_.codec.decode(halves_.data() + position * dimensions_, out);
    }
}

void StoredVectors::prepare(const float* query, std::vector<float>& out) const
{
    out.assign(query, query + dimensions_);
    if (form_ != VectorForm::half || metric_ != Metric::l2) return;
    for (std::size_t d = 0; d < dimensions_; ++d)
        out[d] = static_cast<float>((static_cast<double>(query[d]) - codec_.codec.mean[d]) * codec_.codec.scale);
}

void StoredVectors::scores(const float* prepared, std::size_t begin, std::size_t count, float* out) const
{
    if (form_ == VectorForm::full) {
        pgwarp::scores(metric_, prepared, vectors_.data() + begin * dimensions_, count, dimensions_, out);
    } else {
        half_scores(metric_, prepared, halves_.data() + begin * dimensions_, count, dimensions_, out);
    }
}

void StoredVectors::scores(const float* prepared, std::span<const std::uint32_t> positions, float* out) const
{
    if (form_ == VectorForm::full) {
        scores_gather(metric_, prepared, vectors_.data(), positions.data(), positions.size(), dimensions_, out);
    } else {
        half_scores_gather(metric_, prepared, halves_.data(), positions.data(), positions.size(), dimensions_, out);
    }
}

}  // namespace pgwarp
