use proptest::prelude::*;
use weir_core::units::{Bytes, FrameRate, Rate, Span, Time};

proptest! {
    #[test]
    fn printing_and_parsing_a_quantity_gives_it_back(value: u64) {
        prop_assert_eq!(Time::from_ps(value).to_string().parse(), Ok(Time::from_ps(value)));
        prop_assert_eq!(Span::from_ps(value).to_string().parse(), Ok(Span::from_ps(value)));
        prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
        prop_assert_eq!(Rate::from_bps(value).to_string().parse(), Ok(Rate::from_bps(value)));
        prop_assert_eq!(FrameRate::from_millifps(value).to_string().parse(), Ok(FrameRate::from_millifps(value)));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,20}") {
        let _ = text.parse::<Span>();
        let _ = text.parse::<Rate>();
    }

    #[test]
    fn what_is_sent_in_a_transmission_time_is_at_least_the_frame(size in 1u64..100_000, bps in 1u64..400_000_000_000) {
        let (size, rate) = (Bytes::new(size), Rate::from_bps(bps));
        prop_assert!(rate * (size / rate) >= size);
    }
}
