// Descriptions of methods against their builders and searchers: both agree.
#include "methods/description.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "bag_fixture.h"
#include "bit_fixture.h"
#include "list_fixture.h"
#include "methods/arrays.h"
#include "methods/options.h"
#include "methods_fixture.h"
#include "part_fixture.h"
#include "text_fixture.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t rows = 400;
constexpr std::size_t width = 32;

bool is_allowed(const MethodDescription& method, const ParameterList& options, const IndexShape& column)
{
    return !method.check_options(options, column);
}

// Every combination of the values of choices and booleans that is allowed for the column.
std::vector<ParameterList> option_lists(const MethodDescription& method, const IndexShape& column)
{
    std::vector<ParameterList> lists(1);
    for (const ValueDescription& option : method.options) {
        if (option.kind == ValueKind::integer) continue;
        std::vector<ParameterList> longer;
        for (ParameterList list : lists) {
            const bool is_choice = option.kind == ValueKind::choice;
            for (int i = 0; is_choice ? option.choices[i] != nullptr : i < 2; ++i) {
                list.set(option.name, is_choice ? option.first_choice + i : i);
                longer.push_back(list);
            }
        }
        lists = longer;
    }
    std::erase_if(lists, [&](const ParameterList& list) { return !is_allowed(method, list, column); });
    return lists;
}

IndexShape column_of(const MethodDescription& method, const Comparison& comparison)
{
    return Index::shape_of(method.method, comparison.metric, width, comparison.element);
}

OwnedRows rows_of(const Comparison& comparison)
{
    if (comparison.element == ElementType::text) return random_texts(rows, 10, 3);
    if (is_any_set(comparison.element)) return random_sets(rows, 10, width, 3);
    if (comparison.element == ElementType::bag) return random_bags(rows, 10, width, 3);
    if (comparison.element == ElementType::attribute_set) return random_attribute_sets(rows, 6, width, 3);
    if (is_list(comparison.element)) return random_lists(rows, 10, width, has_weights(comparison.element), 3);
    const bool bits = comparison.element == ElementType::bit;
    std::vector<float> vectors = bits ? clustered_bits(rows, width * 32, 3) : random_rows(rows, width, 3);
    if (comparison.metric == Metric::cosine) normalise_rows(vectors, width);
    return OwnedRows(dense_rows(vectors.data(), rows, width));
}

std::string name_of(const MethodDescription& method, const Comparison& comparison, const ParameterList& options)
{
    std::string text = std::string(method.name) + ", metric " + std::to_string(static_cast<int>(comparison.metric));
    for (std::uint32_t i = 0; i < options.count; ++i)
        text += std::string(", ") + options.items[i].name + " = " + std::to_string(options.items[i].value);
    return text;
}

const ArrayDescription* describe_array(const MethodDescription& method, const char* name)
{
    for (const ArrayDescription& array : method.arrays)
        if (std::strcmp(array.name, name) == 0) return &array;
    return nullptr;
}

void expect_described(const MethodDescription& method, const Index& index)
{
    const ParameterList options = index.builder->effective_options();
    const ResultPromise promise =
        method.result_promise(options, index.shape.element, static_cast<Metric>(index.shape.metric));
    EXPECT_EQ(index.searcher->result_kind(), promise.kind);
    for (const ArrayShape& array : index.builder->arrays()) {
        const ArrayDescription* described = describe_array(method, array.name);
        ASSERT_NE(described, nullptr) << array.name;
        EXPECT_EQ(described->of_rows, array.rows == rows) << array.name;
        EXPECT_TRUE(described->role != ArrayRole::vectors || array.type == vector_array_type(index.shape));
    }
    EXPECT_NO_THROW(require_options(method, options, index.shape));
}

TEST(Descriptions, AreWhatBuildsMakeAndSearchersPromise)
{
    ThreadPool pool(2);
    for (const MethodDescription* method : method_descriptions()) {
        for (const Comparison& comparison : method->comparisons) {
            if (comparison.element == ElementType::float16) continue;  // rows arrive as floats of halves
            const OwnedRows built = rows_of(comparison);
            const IndexShape column = column_of(*method, comparison);
            for (const ParameterList& options : option_lists(*method, column)) {
                SCOPED_TRACE(name_of(*method, comparison, options));
                expect_described(*method, Index(column, built.view(), options, pool));
            }
        }
    }
}

TEST(Descriptions, HaveNamesOfTheirOwn)
{
    std::set<std::string> names;
    for (const MethodDescription* method : method_descriptions()) {
        EXPECT_EQ(find_description(method->name), method);
        EXPECT_EQ(find_description(method->method), method);
        EXPECT_EQ(find_method(method->method)->method, method->method);
        EXPECT_TRUE(names.insert(method->name).second);
        for (const SettingDescription& setting : method->settings)
            EXPECT_TRUE(names.insert(setting.value.name).second) << setting.value.name;
        std::set<std::string> own;
        for (const ValueDescription& option : method->options) EXPECT_TRUE(own.insert(option.name).second);
        for (const ArrayDescription& array : method->arrays) {
            EXPECT_TRUE(own.insert(std::string("array ") + array.name).second);
            EXPECT_LT(std::strlen(array.name), sizeof(ArrayShape::name));
        }
    }
    EXPECT_EQ(find_description("seqscan"), nullptr);
    EXPECT_EQ(find_description(static_cast<Method>(99)), nullptr);
}

// Conclusions that other code draws from a capability.
TEST(Descriptions, HaveWhatTheirCapabilitiesTake)
{
    for (const MethodDescription* method : method_descriptions()) {
        SCOPED_TRACE(method->name);
        EXPECT_EQ(method->links_rows, array_name(*method, ArrayRole::links) != nullptr);
        EXPECT_EQ(method->links_rows, array_name(*method, ArrayRole::link_seeds) != nullptr);
        EXPECT_EQ(method->links_rows, array_name(*method, ArrayRole::link_changes) != nullptr);
        EXPECT_EQ(array_name(*method, ArrayRole::centroids) != nullptr,
                  array_name(*method, ArrayRole::list_of_row) != nullptr);
        for (const Comparison& comparison : method->comparisons) {
            if (!method->stores_rows.has(comparison.element)) continue;
            const bool lists = is_list(comparison.element);
            EXPECT_NE(array_name(*method, lists ? ArrayRole::list_offsets : ArrayRole::vectors), nullptr);
        }
        EXPECT_TRUE(is_complete(*method) || effort_parameter(*method) != nullptr);
        if (method->spread_option != nullptr) {
            EXPECT_TRUE(std::ranges::any_of(method->options, [&](const ValueDescription& option) {
                return std::string(option.name) == method->spread_option && option.kind == ValueKind::integer;
            }));
        }
    }
    for (const ElementNames& element : element_names()) {
        const MethodDescription* complete = complete_description(element.element);
        if (element.element == ElementType::minhash_set) {
            EXPECT_EQ(complete, nullptr);
            continue;
        }
        ASSERT_NE(complete, nullptr);
        EXPECT_TRUE(complete->complete.has(element.element) && takes_elements(*complete, element.element));
    }
}

TEST(Descriptions, RefuseOptionsOutOfRange)
{
    for (const MethodDescription* method : method_descriptions()) {
        for (const ValueDescription& option : method->options) {
            const int least = option.kind == ValueKind::choice ? option.first_choice : option.minimum;
            EXPECT_THROW(require_options(*method, make_list({{option.name, least - 1}}), {}), BadRequest)
                << option.name;
            EXPECT_THROW(require_options(*method, make_list({{option.name, 1000000}}), {}), BadRequest) << option.name;
            EXPECT_NO_THROW(require_options(*method, make_list({{option.name, option.default_value}}), {}));
        }
    }
}

TEST(Descriptions, QueriesShareAWarpEvenly)
{
    const auto settings = find_description("graph")->settings;
    const auto shared = std::ranges::find(settings, std::string("multi_query"), &SettingDescription::parameter);
    ASSERT_NE(shared, settings.end());
    for (const int queries : {0, 1, 2, 4}) EXPECT_TRUE(shared->accepts(queries));
    for (const int queries : {-1, 3, 5, 32}) EXPECT_FALSE(shared->accepts(queries));
}

// Rounding gives a narrower bound than halves do.
TEST(Descriptions, PromisesSayHowManyResultsAreAskedFor)
{
    EXPECT_EQ(search_width(promise_of_vectors(false), 80), 80U);
    EXPECT_EQ(search_width(promise_of_vectors(true), 80), 82U);
    EXPECT_EQ(search_width({ResultKind::lower_bound}, 80), 93U);
    EXPECT_EQ(search_width({ResultKind::approximate}, 80), 320U);
}

}  // namespace
}  // namespace pgwarp::test
