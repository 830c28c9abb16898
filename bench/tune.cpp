#include "tune.h"

#include <cstdio>

namespace pgwarp::bench
{

namespace
{

Settings with(Settings settings, const std::string& name, const std::string& value)
{
    settings.emplace_back(name, value);
    return settings;
}

std::string number(double value)
{
    char text[32];
    std::snprintf(text, sizeof(text), "%g", value);
    return text;
}

class Tuner
{
public:
    Tuner(const Options& options, const Dataset& data, const Method& method)
        : options_(options), data_(data), method_(method)
    {
    }

    Point point(double target, const Settings& settings)
    {
        bool forced = false;
        open_for(options_, data_, method_, settings, &forced);
        return {&method_, target, settings, recall(settings), forced};
    }

    // The fastest of the method's variants, each at the smallest knob that reaches the target.
    std::optional<Point> fastest(double target)
    {
        std::optional<Point> best;
        double best_speed = 0;
        for (const Settings& variant : method_.variants) {
            const std::optional<Settings> settings = smallest(variant, target);
            if (!settings) continue;
            const double speed = measure_clients(quick(), data_, method_, *settings, 1).queries_per_second;
            if (speed <= best_speed) continue;
            best_speed = speed;
            best = point(target, *settings);
        }
        return best;
    }

private:
    Options quick() const
    {
        Options options = options_;
        options.seconds = 0.5;
        return options;
    }

    // Recalls repeat between targets and variants, so they are remembered.
    double recall(const Settings& settings)
    {
        const auto [place, is_new] = recalls_.try_emplace(describe(settings), 0.0);
        if (is_new) place->second = measure_recall(options_, data_, method_, settings);
        return place->second;
    }

    // Recall grows with the knob: double it until the target is reached, then halve the interval.
    std::optional<Settings> smallest(const Settings& variant, double target)
    {
        const Knob& knob = method_.knob.front();
        const auto at = [&](int value) { return with(variant, knob.setting, std::to_string(value)); };
        int below = knob.smallest - 1;
        int reached = knob.smallest;
        while (recall(at(reached)) < target) {
            if (reached == knob.largest) return std::nullopt;
            below = reached;
            reached = std::min(reached * 2, knob.largest);
        }
        while (reached - below > 1) {
            const int middle = below + (reached - below) / 2;
            (recall(at(middle)) < target ? below : reached) = middle;
        }
        return at(reached);
    }

    const Options& options_;
    const Dataset& data_;
    const Method& method_;
    std::map<std::string, double> recalls_;
};

}  // namespace

std::vector<Point> tune(const Options& options, const Dataset& data, const Method& method)
{
    Tuner tuner(options, data, method);
    std::vector<Point> points;
    if (method.knob.empty()) {
        points.push_back(tuner.point(0, {}));
        return points;
    }
    for (const double target : options.targets) {
        if (const std::optional<Point> found = tuner.fastest(target)) {
            points.push_back(*found);
        } else {
            std::printf("  %s does not reach recall %g\n", method.name.c_str(), target);
        }
        if (!method.recall_setting.empty()) {
            points.push_back(tuner.point(target, {{method.recall_setting, number(target)}}));
        }
    }
    return points;
}

}  // namespace pgwarp::bench
