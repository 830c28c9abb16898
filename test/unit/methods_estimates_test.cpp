// Estimates of indexes against indexes that were built.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "bag_fixture.h"
#include "bit_fixture.h"
#include "list_fixture.h"
#include "methods/description.h"
#include "methods_fixture.h"
#include "part_fixture.h"
#include "text_fixture.h"

namespace pgwarp::test::estimates_test
{
namespace
{

constexpr std::size_t rows = 1500;
constexpr std::size_t width = 32;

OwnedRows rows_of(const Comparison& comparison)
{
    if (comparison.element == ElementType::text) return random_texts(rows, 30, 3);
    if (is_any_set(comparison.element)) return random_sets(rows, 40, 5000, 3);
    if (comparison.element == ElementType::bag) return random_bags(rows, 40, 5000, 3);
    if (comparison.element == ElementType::attribute_set) return random_attribute_sets(rows, 20, 200, 3);
    if (comparison.element == ElementType::sparse) return random_lists(rows, 40, width, true, 3);
    const bool bits = comparison.element == ElementType::bit;
    std::vector<float> vectors = bits ? clustered_bits(rows, width * 32, 3) : random_rows(rows, width, 3);
    if (comparison.metric == Metric::cosine) normalise_rows(vectors, width);
    return OwnedRows(dense_rows(vectors.data(), rows, width));
}

std::uint64_t stored_bytes(const Builder& builder)
{
    std::uint64_t bytes = 0;
    for (const ArrayShape& array : builder.arrays()) bytes += array.bytes();
    return bytes;
}

bool has_estimate(const MethodDescription& method, const Comparison& comparison)
{
    const bool known = !is_list(comparison.element) || comparison.element == ElementType::text ||
                       is_any_set(comparison.element) || comparison.element == ElementType::bag ||
                       comparison.element == ElementType::attribute_set || comparison.element == ElementType::sparse;
    return method.estimate_build != nullptr && known && comparison.element != ElementType::float16;
}

// Sizes follow from the shapes of the arrays, so they are nearly right. What distinct parts of lists take in memory is
// not known before.
TEST(Estimates, AreNearTheBytesOfIndexes)
{
    ThreadPool pool(2);
    for (const MethodDescription* method : method_descriptions()) {
        for (const Comparison& comparison : method->comparisons) {
            if (!has_estimate(*method, comparison)) continue;
            SCOPED_TRACE(std::string(method->name) + ", element " +
                         std::to_string(static_cast<int>(comparison.element)) + ", metric " +
                         std::to_string(static_cast<int>(comparison.metric)));
            const OwnedRows built = rows_of(comparison);
            const IndexShape shape = Index::shape_of(method->method, comparison.metric, width, comparison.element);
            const Index index(shape, built.view(), {}, pool);
            const double words = static_cast<double>(built.view().word_count()) / rows;
            const BuildEstimate estimate = method->estimate_build({shape, rows, words});
            const auto stored = static_cast<double>(stored_bytes(*index.builder));
            const auto resident = static_cast<double>(index.searcher->memory_bytes());
            EXPECT_GT(estimate.stored_bytes, 0.8 * stored) << estimate.stored_bytes << " " << stored;
            EXPECT_LT(estimate.stored_bytes, 1.2 * stored) << estimate.stored_bytes << " " << stored;
            const double allowed = is_list(comparison.element) ? 2 : 1.25;
            EXPECT_GT(estimate.host_bytes, resident / allowed) << estimate.host_bytes << " " << resident;
            EXPECT_LT(estimate.host_bytes, resident * allowed) << estimate.host_bytes << " " << resident;
        }
    }
}

// More rows and more dimensions never take less.
TEST(Estimates, GrowWithRowsAndDimensions)
{
    for (const MethodDescription* method : method_descriptions()) {
        if (method->estimate_build == nullptr) continue;
        const Comparison comparison = method->comparisons.front();
        IndexShape narrow = Index::shape_of(method->method, comparison.metric, width, comparison.element);
        IndexShape wide = Index::shape_of(method->method, comparison.metric, 4 * width, comparison.element);
        const BuildEstimate one = method->estimate_build({narrow, rows, 10});
        const BuildEstimate more_rows = method->estimate_build({narrow, 10 * rows, 10});
        const BuildEstimate wider = method->estimate_build({wide, rows, 40});
        for (const BuildEstimate& larger : {more_rows, wider}) {
            EXPECT_GT(larger.stored_bytes, one.stored_bytes) << method->name;
            EXPECT_GT(larger.host_bytes, one.host_bytes) << method->name;
            EXPECT_GT(larger.core_seconds, one.core_seconds) << method->name;
        }
        EXPECT_NO_FATAL_FAILURE(method->estimate_build({narrow, 0, 0}));
        EXPECT_GE(method->estimate_build({narrow, 0, 0}).stored_bytes, 0);
    }
}

}  // namespace
}  // namespace pgwarp::test::estimates_test
