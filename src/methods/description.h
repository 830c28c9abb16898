// The description of an index access method as plain data, for backends, the engine, devices, benchmarks and the SQL
// script. Each method defines its own in methods/METHOD/description.cpp; the registry is protocol/methods.h.
//
// These files are compiled into all binaries, without exceptions and without headers of PostgreSQL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "methods/build_estimate.h"
#include "numeric/metric.h"
#include "protocol/format.h"
#include "protocol/parameters.h"

namespace pgwarp
{

enum class ValueKind { integer, boolean, choice, millionths };  // millionths: SQL shows the value divided by 10^6

// A named value that users set: an option of CREATE INDEX ... WITH (...), or a setting of a session.
struct ValueDescription {
    const char* name;
    const char* help;
    ValueKind kind = ValueKind::integer;
    int default_value = 0;
    int minimum = 0;  // integers and millionths
    int maximum = 0;
    const char* const* choices = nullptr;  // ends with nullptr; choice i stands for the value first_choice + i
    int first_choice = 0;
};

// A set of kinds of elements.
class ElementSet
{
public:
    constexpr ElementSet() = default;
    constexpr ElementSet(std::initializer_list<ElementType> elements)
    {
        for (const ElementType element : elements) bits_ |= bit(element);
    }
    static constexpr ElementSet all()
    {
        ElementSet set;
        set.bits_ = ~std::uint32_t{0};
        return set;
    }
    constexpr bool has(ElementType element) const { return (bits_ & bit(element)) != 0; }

private:
    static constexpr std::uint32_t bit(ElementType element)
    {
        return std::uint32_t{1} << static_cast<unsigned>(element);
    }
    std::uint32_t bits_ = 0;
};

// A setting of a session, pgwarp.NAME. A value other than the default goes to the searcher; of a boolean it goes there
// as 1.
struct SettingDescription {
    ValueDescription value;
    const char* parameter;         // its name in the settings of a search
    const char* detail = nullptr;  // of the help
    // Whether a value within the range is valid, for integers; null: all are. `refusal` is the detail of the error.
    bool (*accepts)(int value) = nullptr;
    const char* refusal = nullptr;
    bool overrides_calibration = false;       // such a search does not promise pgwarp.recall
    bool is_effort = false;                   // the value is an effort of the calibration
    bool ends_early = false;                  // such a search of a complete method may miss rows
    ElementSet elements = ElementSet::all();  // searches of other rows take no notice of the setting
};

// A kind of rows and a metric that the method searches them by. There is an operator class for each.
struct Comparison {
    ElementType element;
    Metric metric;
};

// The purpose of a stored array. A method has at most one array of each role but `quantizer`.
enum class ArrayRole {
    vectors,       // rows as they came (vector_array_type())
    half_vectors,  // f16 [rows][dimensions]: (row - half_mean) * half_scale[0]
    half_mean,     // f32 [1][dimensions]
    half_scale,    // f32 [1][2]: the scale, and the largest error of a row (L2)
    codes,         // rows in another form
    code_scales,   // f32 [rows][1], of codes that are bytes
    codebooks,     // f32 [codewords][dimensions], where codes are numbers of codewords
    quantizer,     // other parts of the quantizer of the codes
    hashes,        // the hash functions of the codes
    list_of_row,   // u32 [rows][1]: the list of a row; no_list where a build is to choose it
    centroids,     // f32 [lists][dimensions]
    links,         // u32 [rows][degree]: numbers of linked rows, then no_link
    link_changes,  // u32 [changes][3]: {row, place, link}: changes of links since these were written
    link_seeds,    // u32 [seeds][1]: rows from which all others are reached
    list_offsets,  // u64 [rows + 1][1]: the first word of each row; a merge continues at the last offset
    list_words,    // u32 [words][1]: words of rows that are lists, row after row
    list_weights,  // f32 [words][1]: weights of those words
};
inline constexpr std::uint32_t no_list = 0xffffffff;
inline constexpr std::uint32_t no_link = 0xffffffff;

// Names of the arrays that hold rows as vectors, the same in every method that has them.
inline constexpr char array_vectors[] = "vectors";
inline constexpr char array_half[] = "half";
inline constexpr char array_half_mean[] = "half_mean";
inline constexpr char array_half_scale[] = "half_scale";

struct ArrayDescription {
    const char* name;
    ArrayRole role;
    bool of_rows = false;  // it has a row for each row of the index
};

// The input of a cost function, which reads no page of the index.
struct SearchCostInput {
    ElementType element;
    double rows;
    ParameterList options;
    ParameterList settings;  // of the session; empty: the defaults
};

// The reason to refuse options. With an empty message they are accepted.
struct OptionFault {
    char message[128] = "";
    const char* hint = nullptr;
    explicit operator bool() const { return message[0] != '\0'; }
};

// A form of the method that benchmarks measure beside the usual one.
struct MethodForm {
    const char* suffix;   // of the method's name
    const char* options;  // of CREATE INDEX
};

// Access methods of pgvector, in whose place methods serve under the same names and options (postgres/am/aliases.h).
enum class MethodAlias { hnsw, ivfflat };

// An alias whose indexes of rows of these elements the method serves.
struct AliasService {
    MethodAlias alias;
    ElementSet elements;
    // Sets options of the method by those that the alias was given; null: these say nothing to the method.
    void (*map_options)(const ParameterList& given, ParameterList* options) = nullptr;
    // The search parameter that the alias's setting of an effort sets; null: that says nothing to the method.
    const char* effort = nullptr;
};

struct MethodDescription {
    Method method;
    const char* name;
    const char* comment;  // of the access method
    std::span<const ValueDescription> options;
    std::span<const SettingDescription> settings;
    std::span<const Comparison> comparisons;
    std::span<const ArrayDescription> arrays;
    std::span<const MethodForm> forms;
    std::span<const AliasService> aliases = {};

    // Checks options that are each within their range. column.dimensions is 0 where the column is not known.
    OptionFault (*check_options)(const ParameterList& options, const IndexShape& column);
    ResultPromise (*result_promise)(const ParameterList& options, ElementType element, Metric metric);
    // Returns the cost of a search for the usual number of rows, as a number of compared rows.
    double (*compared_rows)(const SearchCostInput& input);
    // Estimates an index with default options (build_estimate.h). Null: nothing is known before the build.
    BuildEstimate (*estimate_build)(const EstimateInput& input) = nullptr;

    // Rows of these elements: normal searches miss none, and return them in the order of continuations.
    ElementSet complete = {};
    // Rows of these elements: searches take a bound of the distance (protocol/search_bound.h), and miss no row within
    // it, whatever their effort.
    ElementSet takes_bound = {};
    // Rows of these elements: their arrays as they came (`vectors`, or those of lists) hold the whole index, and a
    // merge needs no engine.
    ElementSet stores_rows = {};
    // Rows of halves are stored, and passed to builds, unchanged under every metric.
    bool stores_halves = false;
    // Arrays hold numbers of other rows: a build that adds or removes rows needs all arrays, and measures recall again.
    bool links_rows = false;
    // The option for the number of parts that rows are spread over. A build of fewer rows than that raises a notice.
    const char* spread_option = nullptr;
};

// The descriptions of the registry, then those that a program has added.
std::span<const MethodDescription* const> method_descriptions();
// Add the description of a method that a program brings along, as tests do, and remove it.
inline constexpr std::size_t most_added_descriptions = 4;
void add_description(const MethodDescription& description);
void remove_description(const MethodDescription& description);
// Return null for a number or a name of no method.
const MethodDescription* find_description(Method method);
const MethodDescription* find_description(const char* name);
// Returns the complete method for rows of this element; null where there is none.
const MethodDescription* complete_description(ElementType element);

bool takes_elements(const MethodDescription& method, ElementType element);
// Whether the method is complete for rows of all its elements.
bool is_complete(const MethodDescription& method);
// Returns null where the method has no array of the role.
const char* array_name(const MethodDescription& method, ArrayRole role);
// Whether an array has a row for each row of the index: one of the addresses or attributes, or one of the method's.
bool is_row_array(const MethodDescription& method, const char* name);
// Returns the name of the search parameter that is the effort; null where the method has none.
const char* effort_parameter(const MethodDescription& method);

// Whether the array "vectors" holds rows of halves unchanged under every metric. Builds then receive them unchanged,
// and a searcher normalises them where it needs unit vectors.
bool keeps_halves(const IndexShape& shape);
// Returns the type of the array "vectors".
ArrayType vector_array_type(const IndexShape& shape);

// For check_options of methods whose option `vectors` is a choice with full vectors first: bits have no other form.
OptionFault check_form_of_bits(const ParameterList& options, const IndexShape& column);

// Names of a kind of rows and of a metric in SQL.
struct ElementNames {
    ElementType element;
    const char* type;      // vector; operator classes are TYPE_METRIC_ops
    const char* function;  // of the support function pgwarp_element_NAME
    // Of TYPE_NAME_ops, in the place of the metric's: operator classes by the same metric differ by it. Null: the
    // metric's.
    const char* operator_class = nullptr;
};
struct MetricNames {
    Metric metric;
    const char* operator_class;  // l2; of TYPE_NAME_ops
    const char* function;        // of the support function pgwarp_metric_NAME
    const char* operator_name;
    bool is_default;  // its operator classes are the defaults of their types
};
std::span<const ElementNames> element_names();
std::span<const MetricNames> metric_names();

#define PGWARP_DECLARE_DESCRIPTION(name, number, on_device) extern const MethodDescription name##_description;
PGWARP_METHODS(PGWARP_DECLARE_DESCRIPTION)
#undef PGWARP_DECLARE_DESCRIPTION

}  // namespace pgwarp
