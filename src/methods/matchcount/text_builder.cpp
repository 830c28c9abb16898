// The build of an index of texts: it stores the packed texts unchanged.
#include <algorithm>

#include "methods/matchcount/matchcount.h"
#include "methods/options.h"
#include "methods/rows/stored_lists.h"

namespace pgwarp::matchcount
{

namespace
{

// Every searcher makes the inverted index from the texts, so that pages hold no posting lists.
class TextBuilder : public Builder
{
public:
    explicit TextBuilder(const ParameterList& options) : form_(gram_form(options)) {}

    void run(RowBuffer& rows, const BuildProgress& progress, ThreadPool&) override
    {
        progress.advance("writing rows", 0, rows.size());
        rows_ = rows.rows();
    }
    std::vector<ArrayShape> arrays() const override { return list_arrays(rows_); }
    void read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const override
    {
        if (!read_list_array(rows_, array, offset, out)) throw BadRequest("unknown array of texts");
    }
    Calibration calibration() const override
    {
        Calibration calibration;
        calibration.count = 1;
        std::fill_n(calibration.points[0].recall, 4, 1.0F);
        return calibration;
    }
    ParameterList effective_options() const override
    {
        ParameterList options;
        options.set(option_gram, form_.n);
        return options;
    }

private:
    GramForm form_;
    RowView rows_;
};

}  // namespace

GramForm gram_form(const ParameterList& options)
{
    require_options(matchcount_description, options, {});
    GramForm form;
    form.n = static_cast<std::uint32_t>(options.get(option_gram, form.n));
    return form;
}

std::unique_ptr<Builder> make_text_builder(const IndexShape&, const ParameterList& options)
{
    return std::make_unique<TextBuilder>(options);
}

}  // namespace pgwarp::matchcount
