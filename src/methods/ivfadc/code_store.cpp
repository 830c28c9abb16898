// Rows stored as product-quantized residuals, compared by asymmetric distances (ADC).
//
// For l2 and a row y = c + r, r quantized to r', the squared distance splits as in the Faiss paper's equation 11:
//   |x - c - r'|^2 = |x - c|^2 + (|r'|^2 + 2 c.r') - 2 x.r'
// The middle term depends on the row alone: one float a row, computed at load. So one table of x.codeword serves all
// lists. For inner products the score is -(x.c) - (x.r').
#include <algorithm>
#include <cmath>

#include "methods/arrays.h"
#include "methods/bulk_memory.h"
#include "methods/ivfadc/row_store.h"
#include "numeric/distance.h"
#include "numeric/nearest.h"
#include "numeric/product_quantizer.h"
#include "numeric/rotation.h"

namespace pgwarp
{

namespace
{

constexpr std::size_t codewords = ProductQuantizer::codewords;

class CodeStore : public RowStore
{
public:
    CodeStore(Metric metric, std::size_t dimensions, std::size_t rows, const IvfOptions& options,
              std::span<const float> centroids)
        : metric_(metric),
          dimensions_(dimensions),
          quantizer_(dimensions, options.subquantizers),
          centroids_(centroids),
          codes_(rows * options.subquantizers)
    {
        if (options.opq && rows > 0) rotation_ = Rotation(dimensions);
    }

    bool write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes,
               InvertedLists& lists) override
    {
        if (array == array_codebooks) {
            write_piece(quantizer_.codebooks(), offset, bytes);
        } else if (array == array_rotation) {
            write_piece(rotation_.matrix(), offset, bytes);
        } else if (array == array_rotation_signs) {
            write_piece(rotation_.signs(), offset, bytes);
        } else if (array == array_codes) {
            lists.arrange();
            scatter_rows(bytes, offset, quantizer_.subquantizers(), lists, reinterpret_cast<std::byte*>(codes_.data()));
        } else {
            return false;
        }
        return true;
    }

    void finish_load(const InvertedLists& lists, ThreadPool& pool) override
    {
        transpose_codebooks();
        std::vector<float> rotated(centroids_.begin(), centroids_.end());
        if (!rotation_.empty()) rotation_.apply(centroids_, rotated, pool);
        if (metric_ != Metric::l2) return;
        row_terms_.resize(lists.rows());
        pool.parallel_for(lists.lists(), 4, [&](std::size_t first, std::size_t last) {
            std::vector<float> decoded(dimensions_);
            for (std::size_t list = first; list < last; ++list) {
                const float* centroid = rotated.data() + list * dimensions_;
                for (std::size_t position = lists.begin(list); position < lists.end(list); ++position) {
                    quantizer_.decode(code(position), decoded.data());
                    row_terms_[position] =
                        static_cast<float>(canonical_dot(decoded.data(), decoded.data(), dimensions_) +
                                           2 * canonical_dot(decoded.data(), centroid, dimensions_));
                }
            }
        });
    }

    std::uint64_t memory_bytes() const override
    {
        return codes_.size() + rotation_.bytes() + (row_terms_.size() + 2 * codewords * dimensions_) * sizeof(float);
    }
    ResultKind result_kind() const override { return ResultKind::approximate; }

    PreparedQuery prepare(const float* query) const override
    {
        PreparedQuery prepared;
        prepared.query = query;
        prepared.moved.assign(query, query + dimensions_);
        if (!rotation_.empty()) rotation_.apply(query, prepared.moved.data());
        prepared.table.resize(quantizer_.subquantizers() * codewords);
        for (std::size_t part = 0; part < quantizer_.subquantizers(); ++part) {
            const std::size_t begin = quantizer_.part_begin(part);
            float* table = prepared.table.data() + part * codewords;
            codeword_table(transposed_.data() + begin * codewords, quantizer_.part_begin(part + 1) - begin,
                           prepared.moved.data() + begin, table);
            if (metric_ == Metric::l2) {
                for (std::size_t c = 0; c < codewords; ++c) table[c] *= 2;
            }
        }
        return prepared;
    }

    void scores(const PreparedQuery& query, std::size_t, float coarse_score, std::size_t begin, std::size_t count,
                float* out) const override
    {
        const std::size_t parts = quantizer_.subquantizers();
        const float* table = query.table.data();
        std::size_t i = 0;
        for (; i + 4 <= count; i += 4) {
            const std::uint8_t* codes = code(begin + i);
            float sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
            for (std::size_t part = 0; part < parts; ++part) {
                const float* line = table + part * codewords;
                sum0 += line[codes[part]];
                sum1 += line[codes[parts + part]];
                sum2 += line[codes[2 * parts + part]];
                sum3 += line[codes[3 * parts + part]];
            }
            out[i] = sum0 + coarse_score;
            out[i + 1] = sum1 + coarse_score;
            out[i + 2] = sum2 + coarse_score;
            out[i + 3] = sum3 + coarse_score;
        }
        for (; i < count; ++i) {
            const std::uint8_t* codes = code(begin + i);
            float sum = 0;
            for (std::size_t part = 0; part < parts; ++part) sum += table[part * codewords + codes[part]];
            out[i] = sum + coarse_score;
        }
        if (metric_ != Metric::l2) return;
        for (i = 0; i < count; ++i) out[i] += row_terms_[begin + i];
    }

    double value(const PreparedQuery& query, std::size_t list, std::size_t position) const override
    {
        const float* centroid = centroids_.data() + list * dimensions_;
        const Metric coarse = coarse_metric(metric_);
        float raw;
        scores(query, list, score(coarse, query.query, centroid, dimensions_), position, 1, &raw);
        if (metric_ == Metric::l2) return std::sqrt(std::max(0.0, static_cast<double>(raw)));
        return metric_ == Metric::cosine ? 1.0 + raw : static_cast<double>(raw);
    }

private:
    const std::uint8_t* code(std::size_t position) const
    {
        return codes_.data() + position * quantizer_.subquantizers();
    }

    void transpose_codebooks()
    {
        transposed_.resize(codewords * dimensions_);
        for (std::size_t part = 0; part < quantizer_.subquantizers(); ++part) {
            const std::size_t begin = quantizer_.part_begin(part);
            const std::size_t width = quantizer_.part_begin(part + 1) - begin;
            const float* codebook = quantizer_.codebook(part);
            for (std::size_t c = 0; c < codewords; ++c) {
                for (std::size_t d = 0; d < width; ++d)
                    transposed_[(begin + d) * codewords + c] = codebook[c * width + d];
            }
        }
    }

    Metric metric_;
    std::size_t dimensions_;
    ProductQuantizer quantizer_;
    std::span<const float> centroids_;
    Rotation rotation_;
    std::vector<float> transposed_;  // [d][256], part after part
    BulkVector<std::uint8_t> codes_;
    std::vector<float> row_terms_;
};

}  // namespace

std::unique_ptr<RowStore> make_code_store(Metric metric, std::size_t dimensions, std::size_t rows,
                                          const IvfOptions& options, std::span<const float> centroids)
{
    return std::make_unique<CodeStore>(metric, dimensions, rows, options, centroids);
}

}  // namespace pgwarp
